// Draws the charts of a report, from the trials that it holds.
"use strict";
for (const element of document.querySelectorAll("[data-chart]")) Charts.update(element);
