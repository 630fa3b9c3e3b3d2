// Python in Node: node pyodide.mjs REPOSITORY PACKAGES WHEEL... -- PYTEST'S ARGUMENTS. Its exit status is pytest's.
// PACKAGES is a folder with gradlab and pytest in it; the wheels are those that were built for Pyodide.
import { loadPyodide } from "pyodide";

const [repository, packages, ...rest] = process.argv.slice(2);
const wheels = rest.slice(0, rest.indexOf("--"));
const args = rest.slice(rest.indexOf("--") + 1);
const began = performance.now();
const seconds = () => ((performance.now() - began) / 1000).toFixed(1);

const python = await loadPyodide();
const started = seconds();
for (const wheel of wheels) {
  await python.loadPackage(`file://${wheel}`, { checkIntegrity: false, messageCallback: () => {} }); // .ci/pyodide.py has checked it
}
for (const [name, folder] of [
  ["repository", repository],
  ["packages", packages],
]) {
  python.FS.mkdirTree(`/${name}`);
  python.mountNodeFS(`/${name}`, folder);
}
const loaded = seconds();
const main = `
import os, sys, time
sys.dont_write_bytecode = True
os.chdir("/repository")
sys.path = ["/packages", *(path for path in sys.path if path)]  # what is tested is the wheel, not the folder here
times = [time.perf_counter()]
import gradlab as gl
times.append(time.perf_counter())
for _ in range(2):
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    times.append(time.perf_counter())
assert x.grad.tolist() == [2.0, 4.0] and gl.__file__.startswith("/packages/"), gl.__file__
"gradlab {:.1f} s, the first gradient {:.1f} ms, the second {:.1f} ms".format(
    times[1] - times[0], 1000 * (times[2] - times[1]), 1000 * (times[3] - times[2]))
`;
try {
  const told = await python.runPythonAsync(main);
  console.log(`Pyodide ${python.version}: Python after ${started} s, the wheels after ${loaded} s; ${told}`);
  python.globals.set("arguments", python.toPy(args));
  process.exitCode = await python.runPythonAsync("import pytest\nint(pytest.main(list(arguments)))");
} catch (error) {
  console.error(String(error).slice(-4000)); // uncaught it would be followed by a megabyte of Pyodide's source
  process.exitCode = 1;
}
