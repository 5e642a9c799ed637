// The page comes alive; without this it is still complete, but for the picture and the panel.

startDrawing();
startPanel();
byId("tree-select").addEventListener("input", () => {
  showTree(Number(byId("tree-select").value));
  answer();
});
answer();
