// The page comes alive; without this it is still complete, but for the picture and the panel.

if (svg) startDrawing(); // boosted trees are not drawn
startPanel();
byId("tree-select")?.addEventListener("input", () => {
  showTree(Number(byId("tree-select").value));
  answer();
});
answer();
