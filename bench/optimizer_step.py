#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The optimiser step of examples/optimizer_step against PyTorch's on a GPU.

curve: trains a small network twice from the same seed, by torch.autocast + torch.amp.GradScaler + torch.optim.AdamW (or SGD), and by f16 copies
  of f32 master weights with our step, the whole iteration captured in one CUDA Graph. On some steps the loss is made to overflow. Both must
  skip the same steps, have the same scales, and losses closer than --tolerance (relative, at every step).
time: one step over the parameters of GPT-2 small (148 tensors, 124 M elements), ours against torch.optim.AdamW(fused=True) with GradScaler's
  unscale and update, both as CUDA Graphs, in turn. Ours also writes the f16 copies.

usage: optimizer_step.py curve|time --db DB --lib LIB [--optimizer adamw|sgd] [--steps 300] [--seed 0] [--tolerance 0.01]
DB holds the kernels: kernelwright tune examples/optimizer_step/adamw_step.op.toml --set L=6,N=65536 --set L=148,N=38597376 (and the same of SGD)
"""
import argparse
import json
import statistics

import torch

from kernelwright_library import Library

INTERVAL = 25                      # good steps until the scale grows
OVERFLOWS = (9, 40, 41, 118, 200)  # steps whose loss is multiplied by 1e9
BATCH, FEATURES, WIDTH, CLASSES = 256, 64, 256, 10
OPS = {"adamw": "adamw_step", "sgd": "sgd_momentum_step"}
RATES = {"adamw": 2e-3, "sgd": 5e-2}
SCALE = 2.0**16


def make_data(args):
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    x = torch.randn(args.steps, BATCH, FEATURES, device="cuda", generator=generator)
    teacher = torch.randn(FEATURES, CLASSES, device="cuda", generator=generator)
    noise = torch.randn(args.steps, BATCH, CLASSES, device="cuda", generator=generator)
    labels = (torch.tanh(x @ teacher) + 0.3 * noise).argmax(-1)
    factors = torch.ones(args.steps, device="cuda")
    for step in OVERFLOWS:
        if step < args.steps:
            factors[step] = 1e9
    return x, labels, factors


def make_model(seed):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(FEATURES, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, CLASSES)]
    return torch.nn.Sequential(*layers).cuda()


def make_torch_optimizer(args, parameters):
    if args.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=RATES["adamw"], betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    return torch.optim.SGD(parameters, lr=RATES["sgd"], momentum=0.9, weight_decay=1e-4)


def train_by_torch(args, data):
    model = make_model(args.seed)
    optimizer = make_torch_optimizer(args, model.parameters())
    scaler = torch.amp.GradScaler("cuda", init_scale=SCALE, growth_interval=INTERVAL)
    history = []
    for x, labels, factor in zip(*data):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), labels)
        scaler.scale(loss * factor).backward()
        scaler.step(optimizer)
        scale = scaler.get_scale()
        scaler.update()
        history.append((loss.item(), scaler.get_scale() < scale, scaler.get_scale()))
    return history


class Step:
    """Our step over lists of tensors: their tables of pointers, the single values, the kernel."""

    def __init__(self, args, library, masters, grads, copies):
        def table(tensors):
            return torch.tensor([tensor.data_ptr() for tensor in tensors], dtype=torch.int64, device="cuda")

        self.values = {
            "size": torch.tensor([tensor.numel() for tensor in masters], dtype=torch.int64, device="cuda"),
            "learning_rate": torch.tensor(RATES[args.optimizer], device="cuda"),
            "interval": torch.tensor(INTERVAL, dtype=torch.int32, device="cuda"),
            "scale": torch.tensor(SCALE, device="cuda"),
            "num_good": torch.tensor(0, dtype=torch.int32, device="cuda"),
            "step": torch.tensor(0.0, device="cuda"),
            "found_inf": torch.tensor(0.0, device="cuda"),
        }
        moments = ("exp_avg", "exp_avg_sq") if args.optimizer == "adamw" else ("velocity",)
        self.lists = {"param": masters, "grad": grads, "copy": copies, **{name: [torch.zeros_like(tensor) for tensor in masters] for name in moments}}
        self.tables = {name: table(tensors) for name, tensors in self.lists.items()}
        self.kernel = library.find(OPS[args.optimizer], {"L": len(masters), "N": max(tensor.numel() for tensor in masters)})
        self.workspace = torch.empty(max(self.kernel.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        self.zeroed = torch.zeros(max(self.kernel.zeroed_workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        pointers = {name: tensor.data_ptr() for name, tensor in {**self.values, **self.tables}.items()}
        self.launch = self.kernel.bind({name: pointers[name] for name in self.kernel.tensor_names}, self.workspace.data_ptr(), self.zeroed.data_ptr())

    def __call__(self):
        self.launch(torch.cuda.current_stream().cuda_stream)


def captured(function):
    """`function` as a CUDA Graph, after a call that is not captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph


def train_by_our_step(args, data, library):
    masters = [parameter.detach().clone() for parameter in make_model(args.seed).parameters()]
    copies = [master.half().requires_grad_() for master in masters]
    for copy in copies:
        copy.grad = torch.zeros_like(copy)
    step = Step(args, library, masters, [copy.grad for copy in copies], copies)
    x, labels, factor = torch.zeros_like(data[0][0]), torch.zeros_like(data[1][0]), torch.zeros_like(data[2][0])
    loss = torch.zeros((), device="cuda")

    def iterate():
        for copy in copies:
            copy.grad.zero_()
        value = x.half()
        for layer in range(0, len(copies), 2):
            value = torch.nn.functional.linear(value, copies[layer], copies[layer + 1])
            value = torch.relu(value) if layer + 2 < len(copies) else value
        result = torch.nn.functional.cross_entropy(value.float(), labels)
        loss.copy_(result.detach())
        (result * factor * step.values["scale"]).backward()
        step()

    kept = [[tensor.detach().clone() for tensor in tensors] for tensors in step.lists.values()]
    kept_values = {name: value.clone() for name, value in step.values.items()}
    graph = captured(iterate)
    with torch.no_grad():  # the call before the capture was a step too
        for tensors, saved in zip(step.lists.values(), kept):
            for tensor, value in zip(tensors, saved):
                tensor.copy_(value)
        for name, value in kept_values.items():
            step.values[name].copy_(value)
    history = []
    for next_x, next_labels, next_factor in zip(*data):
        x.copy_(next_x)
        labels.copy_(next_labels)
        factor.copy_(next_factor)
        graph.replay()
        history.append((loss.item(), step.values["found_inf"].item() == 1, step.values["scale"].item()))
    return history, step.kernel


def compare_curves(args):
    data = make_data(args)
    theirs = train_by_torch(args, data)
    ours, kernel = train_by_our_step(args, data, Library(args.lib, args.db))
    skipped = [[step for step, entry in enumerate(history) if entry[1]] for history in (theirs, ours)]
    differences = [abs(a[0] - b[0]) / abs(a[0]) for a, b in zip(theirs, ours)]
    checks = {
        "same steps are skipped": skipped[0] == skipped[1] and set(OVERFLOWS) & set(range(args.steps)) <= set(skipped[0]),
        "same scales": [entry[2] for entry in theirs] == [entry[2] for entry in ours],
        "same losses": max(differences) <= args.tolerance,
        "the network learns": statistics.mean(entry[0] for entry in ours[-20:]) < 0.8 * ours[0][0],
    }
    for step in sorted({0, 1, *OVERFLOWS, *range(0, args.steps, 50), args.steps - 1} & set(range(args.steps))):
        print(f"step {step:>4}  loss {theirs[step][0]:.6f} torch, {ours[step][0]:.6f} ours{'  skipped' if ours[step][1] else ''}  scale {ours[step][2]:g}")
    print(f"skipped: torch {skipped[0]}, ours {skipped[1]}")
    print(f"largest relative difference of the losses {max(differences):.2e} (tolerance {args.tolerance:g}), mean {statistics.mean(differences):.2e}")
    for text, is_right in checks.items():
        print(f"{'PASS' if is_right else 'FAIL'}  {text}")
    print(json.dumps({"optimizer": args.optimizer, "steps": args.steps, "seed": args.seed, "skipped": skipped[1], "max_difference": max(differences),
                      "mean_difference": statistics.mean(differences), "variant": kernel.variant, "config": kernel.config,
                      "torch": torch.__version__, "device": torch.cuda.get_device_name(), "is_right": all(checks.values())}))
    return 0 if all(checks.values()) else 1


def gpt2_shapes():
    width, blocks = 768, 12
    block = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,), (width,), (4 * width, width), (4 * width,),
             (width, 4 * width), (width,)]
    return [(50257, width), (1024, width)] + block * blocks + [(width,), (width,)]


def time_steps(args):
    shapes = gpt2_shapes()
    generator = torch.Generator(device="cuda").manual_seed(args.seed)
    masters = [torch.randn(shape, device="cuda", generator=generator) for shape in shapes]
    copies = [master.half() for master in masters]
    grads = [torch.randn(shape, device="cuda", generator=generator).mul_(SCALE * 1e-3).half() for shape in shapes]
    step = Step(args, Library(args.lib, args.db), masters, grads, copies)
    parameters = [torch.nn.Parameter(master.clone()) for master in masters]
    for parameter, grad in zip(parameters, grads):
        parameter.grad = grad.float()
    optimizer = torch.optim.AdamW(parameters, lr=torch.tensor(RATES["adamw"], device="cuda"), weight_decay=0.01, fused=True, capturable=True)
    scale, growth = torch.tensor(SCALE, device="cuda"), torch.tensor(0, dtype=torch.int32, device="cuda")
    found = torch.tensor(0.0, device="cuda")

    def torch_step():
        # What GradScaler does for an optimiser that takes scale and flag: it looks at the gradients, the kernel unscales and skips.
        found.zero_()
        torch._amp_foreach_non_finite_check_and_unscale_([parameter.grad for parameter in parameters], found, torch.ones_like(found))
        optimizer.grad_scale, optimizer.found_inf = scale, found
        optimizer.step()
        torch._amp_update_scale_(scale, growth, found, 2.0, 0.5, INTERVAL)

    graphs = {"ours": captured(step), "torch": captured(torch_step)}
    times = {name: [] for name in graphs}
    for round_number in range(args.rounds + 2):
        for name, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(5):
                graph.replay()
            end.record()
            end.synchronize()
            if round_number >= 2:
                times[name].append(begin.elapsed_time(end) * 200)  # us of one
    medians = {name: statistics.median(values) for name, values in times.items()}
    num_elements = sum(master.numel() for master in masters)
    # Ours: gradients twice, three tensors read and written, the copies read and written (a skipped step leaves them). Torch: f32 gradients.
    ours_bytes, torch_bytes = num_elements * (2 * 2 + 3 * 8 + 4), num_elements * (2 * 4 + 4 + 3 * 8)
    print(json.dumps({"elements": num_elements, "tensors": len(shapes), "ours_us": medians["ours"], "torch_us": medians["torch"],
                      "torch_over_ours": medians["torch"] / medians["ours"], "ours_gb_per_s": ours_bytes / medians["ours"] / 1e3,
                      "torch_gb_per_s": torch_bytes / medians["torch"] / 1e3, "match": step.kernel.match, "config": step.kernel.config,
                      "torch": torch.__version__, "device": torch.cuda.get_device_name()}))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["curve", "time"])
    parser.add_argument("--db", required=True)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--optimizer", choices=list(OPS), default="adamw")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tolerance", type=float, default=0.01)
    args = parser.parse_args()
    return compare_curves(args) if args.what == "curve" else time_steps(args)


if __name__ == "__main__":
    raise SystemExit(main())
