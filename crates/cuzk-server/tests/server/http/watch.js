// Runs before everything else and writes down what fails.
globalThis.failures = [];
addEventListener("error", (event) => failures.push(String(event.message)));
addEventListener("unhandledrejection", (event) => failures.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) =>
  failures.push(`${event.violatedDirective}: ${event.blockedURI}`));
