// The page comes alive; without this it is still complete, but for the picture and the panel.

if (svg) startDrawing(); // boosted trees and those of online forests are not drawn
startPanel();
byId("tree-select")?.addEventListener("input", () => {
  showTree(Number(byId("tree-select").value));
  answer();
});
answer();
