// The only ways from text to markup and scripts on this page: emptying an element, and the chart library.

export const CHART_LIBRARY = "/inspector/charts.js";

if (window.trustedTypes !== undefined) {
  window.trustedTypes.createPolicy("default", {
    createHTML: (text) => (text === "" ? text : null),
    createScriptURL: (address) => (address === CHART_LIBRARY ? address : null),
  });
}
