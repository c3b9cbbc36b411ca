// The only permitted uses of text as markup or script: emptying an element, and loading the chart library.

export const CHART_LIBRARY = "/inspector/charts.js";

if (window.trustedTypes !== undefined) {
  window.trustedTypes.createPolicy("default", {
    createHTML: (text) => (text === "" ? text : null),
    createScriptURL: (address) => (address === CHART_LIBRARY ? address : null),
  });
}
