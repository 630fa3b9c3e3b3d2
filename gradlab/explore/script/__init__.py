"""Run a Python script as Python would, and diagnose it as the doctor does a `%%grad` cell."""

from gradlab.explore.script.arguments import absolute_page, extract_html_option, read_kinds
from gradlab.explore.script.formats import github_report, json_report
from gradlab.explore.script.output import html_page, text, write_page
from gradlab.explore.script.program import NotAScriptError, Program, read_module, read_script
from gradlab.explore.script.redirection import flush_output, print_error, redirect_stdout_to_stderr
from gradlab.explore.script.running import ScriptRun, run_script
from gradlab.explore.script.sarif import sarif_report
from gradlab.explore.script.timings import timings_table

__all__ = [
    "NotAScriptError",
    "Program",
    "ScriptRun",
    "absolute_page",
    "extract_html_option",
    "flush_output",
    "github_report",
    "html_page",
    "json_report",
    "print_error",
    "read_kinds",
    "read_module",
    "read_script",
    "redirect_stdout_to_stderr",
    "run_script",
    "sarif_report",
    "text",
    "timings_table",
    "write_page",
]
