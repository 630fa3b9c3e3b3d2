// ESLint's own recommendations, and the form of modules that gradlab/notebook/bundle.py joins: named imports from files, and one
// list of exports at the end. Types and undefined names are the type checker's.
import js from "@eslint/js";
import globals from "globals";

const form = (selector, message) => ({ selector, message: `${message} (see gradlab/notebook/bundle.py)` });

export default [
  js.configs.recommended,
  {
    files: ["gradlab/notebook/static/**/*.js"],
    languageOptions: { ecmaVersion: 2022, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-var": "error",
      "prefer-const": "error",
      "max-lines": ["error", 600],
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "write"].map((property) => ({
          property,
          message: "What a user named is written as text only.",
        })),
      ],
      "no-restricted-syntax": [
        "error",
        form("ImportDeclaration[specifiers.length=0]", "import names"),
        form(":matches(ImportDefaultSpecifier, ImportNamespaceSpecifier)", "import names, in braces"),
        form("ImportExpression", "no module is loaded at run time"),
        form("MetaProperty[meta.name='import']", "there is one module in the end, without an address"),
        form(":matches(ExportDefaultDeclaration, ExportAllDeclaration)", "export by one list of names"),
        form("ExportNamedDeclaration[declaration]", "export by one list of names, at the end"),
        form("Program > VariableDeclaration[kind='let']", "a module has no state: make it in a function or a class"),
      ],
    },
  },
];
