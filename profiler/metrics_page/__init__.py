"""Pages of /metrics: what vLLM, SGLang, TensorRT-LLM, TGI and llama.cpp tell of themselves."""
