#!/usr/bin/env python3
"""Times PyTorch's kernels on the shapes of a dense layer, for the stage peers of leasehold-gpu-check.

A CUDA graph has the layer's matmuls and attention as often as the model has layers, without norms,
rotations and logits. Writes JSON: {"torch": version, "peers": [{"kind", "rows", "seconds", "bytes",
"flop"} or {"kind", "rows", "missing": reason}]}. int8 is torch._int_mm, which needs 32 rows at least;
int4 is torch._weight_int4pack_mm. Exit code 3: PyTorch or a GPU is missing.
"""
import argparse
import json
import sys

MISSING = 3
GROUP = 128  # weights of int4 that share a scale


def bf16_matmul(torch, rows, n_in, n_out):
    weight = torch.randn(n_out, n_in, dtype=torch.bfloat16, device="cuda")
    x = torch.randn(rows, n_in, dtype=torch.bfloat16, device="cuda")
    return lambda: torch.nn.functional.linear(x, weight), 2.0


def int8_matmul(torch, rows, n_in, n_out):
    weight = torch.randint(-127, 128, (n_out, n_in), dtype=torch.int8, device="cuda").t()
    x = torch.randint(-127, 128, (max(rows, 32), n_in), dtype=torch.int8, device="cuda")
    return lambda: torch._int_mm(x, weight), 1.0


def int4_matmul(torch, rows, n_in, n_out):
    codes = torch.randint(0, 256, (n_out, n_in // 2), dtype=torch.uint8, device="cuda")
    weight = torch._convert_weight_to_int4pack(codes, 8)
    scales = torch.ones(n_in // GROUP, n_out, 2, dtype=torch.bfloat16, device="cuda")
    x = torch.randn(rows, n_in, dtype=torch.bfloat16, device="cuda")
    return lambda: torch._weight_int4pack_mm(x, weight, GROUP, scales), 0.5 + 4 / GROUP


KINDS = {"bf16": bf16_matmul, "int8": int8_matmul, "int4": int4_matmul}


def attention(torch, shape, rows):
    is_prompt = rows > 32
    sequences, queries = (1, rows) if is_prompt else (rows, 1)
    positions = rows if is_prompt else shape.context

    def heads(n):
        return torch.randn(sequences, shape.heads, n, shape.width // shape.heads,
                           dtype=torch.bfloat16, device="cuda")
    q, k, v = heads(queries), heads(positions), heads(positions)
    run = torch.nn.functional.scaled_dot_product_attention
    return lambda: run(q, k, v, is_causal=is_prompt), 2.0 * (k.numel() + v.numel())


def median_seconds(torch, step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(20):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def time_layers(torch, shape, kind, rows):
    sizes = [(shape.width, 3 * shape.width), (shape.width, shape.width),
             (shape.width, 2 * shape.ffn), (shape.ffn, shape.width)]
    matmuls = [KINDS[kind](torch, rows, n_in, n_out) for n_in, n_out in sizes]
    attend, kv_bytes = attention(torch, shape, rows)

    def step():
        for _ in range(shape.layers):
            for multiply, _ in matmuls:
                multiply()
            attend()
    elements = [n_in * n_out for n_in, n_out in sizes]
    weight_bytes = sum(n * each for n, (_, each) in zip(elements, matmuls))
    return {"kind": kind, "rows": rows, "seconds": median_seconds(torch, step),
            "bytes": shape.layers * (weight_bytes + kv_bytes),
            "flop": shape.layers * 2.0 * rows * sum(elements)}


def main():
    options = argparse.ArgumentParser(description="Time PyTorch's kernels on a dense layer")
    for name, value in (("width", 4096), ("ffn", 11008), ("heads", 32), ("layers", 32),
                        ("context", 512)):
        options.add_argument("--" + name, type=int, default=value)
    options.add_argument("--out", required=True)
    shape = options.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is missing ({error}); install it to compare", file=sys.stderr)
        return MISSING
    if not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} finds no GPU", file=sys.stderr)
        return MISSING
    peers = []
    for kind in KINDS:
        for rows in (1, 8, 32, 512):
            try:
                peers.append(time_layers(torch, shape, kind, rows))
            except (AttributeError, RuntimeError, TypeError) as error:
                peers.append({"kind": kind, "rows": rows, "missing": str(error)[:200]})
            torch.cuda.empty_cache()
    with open(shape.out, "w", encoding="utf-8") as out:
        json.dump({"torch": torch.__version__, "peers": peers}, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
