"""The doctor: the cause of a wrong gradient, with the line, the numbers and a fix.

`front` has `gl.doctor`, `session` diagnoses one notebook cell or script after another, `after_run` a run that was not recorded.
`examine` applies the checks to a case and has their table of contents; `registry` has the kinds of findings.

- `context/`: everything known of a run. `Case` combines the trace, the namespace, the source and the error.
- `checks/`: one module for each family of causes. A check takes a `Case` and yields findings with the numbers that prove them.
- `errors/`: explanations of exceptions.
"""
