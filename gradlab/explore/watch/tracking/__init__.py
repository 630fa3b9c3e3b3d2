"""The numbers of a watched training in TensorBoard, Weights & Biases, MLflow, and objects with `log(dict, step)`."""
