"""What is predicted: classes or numbers, one column or several."""
