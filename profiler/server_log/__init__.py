"""Logs that inference servers write: vLLM, SGLang, TensorRT-LLM, llama.cpp."""
