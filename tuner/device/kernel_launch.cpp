// See kernel_launch.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/kernel_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kw::tuner {
namespace {

constexpr std::int64_t kMaxGrid[3] = {2147483647, 65535, 65535};  // CUDA Programming Guide, technical specifications
constexpr unsigned int kMaxPortableCluster = 8;
constexpr int kCodePlanMismatch = -1;  // our own fault codes are negative

unsigned int num_ctas(const std::array<unsigned int, 3>& cluster) { return cluster[0] * cluster[1] * cluster[2]; }

/// A struct under construction: natural alignment, as C++ lays out a struct of such fields.
class Packer {
 public:
  void add(const void* value, std::size_t num_bytes) {
    const std::size_t offset = reserve(num_bytes, num_bytes);
    std::memcpy(bytes_.data() + offset, value, num_bytes);
  }
  /// Zero bytes to be filled later; returns where they are.
  std::size_t reserve(std::size_t num_bytes, std::size_t align_bytes) {
    while (bytes_.size() % align_bytes != 0) bytes_.push_back(std::byte{0});
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + num_bytes);
    align_ = std::max(align_, align_bytes);
    return offset;
  }
  std::vector<std::byte> finish() {
    if (bytes_.empty()) bytes_.push_back(std::byte{0});  // an empty struct has one byte
    while (bytes_.size() % align_ != 0) bytes_.push_back(std::byte{0});
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t align_ = 1;
};

Error plan_error(const KernelJob& job, const std::string& what) {
  return Error{Stage::kDevice, Code::kInternal, fmt::format("{}: launch plan: {}", job.label, what), {}, {}};
}

Result<std::vector<std::uint64_t>> evaluate_list(const std::vector<IntExpr>& expressions, const IntBindings& bindings) {
  std::vector<std::uint64_t> values;
  for (const IntExpr& expression : expressions) {
    KW_TRY(const std::int64_t value, expression.evaluate(bindings));
    values.push_back(static_cast<std::uint64_t>(value));
  }
  return values;
}

/// All of the map but its address.
Result<EvaluatedTensorMap> evaluate_map(const PlanField& field, const IntBindings& bindings) {
  EvaluatedTensorMap map;
  map.dtype = field.map.dtype;
  KW_TRY(map.extents, evaluate_list(field.map.extents, bindings));
  KW_TRY(map.strides_bytes, evaluate_list(field.map.strides_bytes, bindings));
  KW_TRY(const std::vector<std::uint64_t> box, evaluate_list(field.map.box, bindings));
  for (const std::uint64_t extent : box) map.box.push_back(static_cast<std::uint32_t>(extent));
  KW_TRY(const std::int64_t swizzle_bytes, field.map.swizzle_bytes.evaluate(bindings));
  map.swizzle_bytes = static_cast<int>(swizzle_bytes);
  return map;
}

std::size_t slot_bytes(PlanField::Kind kind, DType scalar_dtype) {
  if (kind == PlanField::Kind::kTensorMap) return kTensorMapBytes;
  return kind == PlanField::Kind::kScalar ? static_cast<std::size_t>(size_bytes(scalar_dtype)) : sizeof(DevicePointer);
}

/// Packs a field of the parameter that is under construction, or reserves its slot.
Status pack_field(const KernelJob& job, const PlanField& field, const IntBindings& bindings, Packer& packer, EvaluatedLaunch& launch) {
  switch (field.kind) {
    case PlanField::Kind::kTensor:
    case PlanField::Kind::kWorkspace:
    case PlanField::Kind::kScalar:
    case PlanField::Kind::kTensorMap: {
      LaunchSlot slot{field.kind, field.name, field.source, is_of_workspace(field), field.scalar_dtype, launch.parameters.size()};
      const bool is_map = field.kind == PlanField::Kind::kTensorMap;
      if (is_map) {
        KW_TRY(slot.map, evaluate_map(field, bindings));
      }
      const std::size_t num_bytes = slot_bytes(field.kind, field.scalar_dtype);
      slot.offset_bytes = packer.reserve(num_bytes, is_map ? kTensorMapAlignBytes : num_bytes);
      launch.slots.push_back(std::move(slot));
      return {};
    }
    case PlanField::Kind::kInt32: {
      KW_TRY(const std::int64_t value, field.value.evaluate(bindings));
      const auto narrow = static_cast<std::int32_t>(value);
      if (narrow != value) return fail(plan_error(job, fmt::format("field {} = {}: must fit 32 bits", field.name, value)));
      packer.add(&narrow, sizeof narrow);
      return {};
    }
    case PlanField::Kind::kInt64: {
      KW_TRY(const std::int64_t value, field.value.evaluate(bindings));
      packer.add(&value, sizeof value);
      return {};
    }
  }
  return fail(plan_error(job, fmt::format("field {}: unknown kind", field.name)));
}

Status fill_slot(const KernelJob& job, const LaunchSlot& slot, const LaunchPointers& pointers, std::byte* bytes) {
  if (slot.kind == PlanField::Kind::kScalar) {
    const auto found = job.scalars.find(slot.source);
    if (found == job.scalars.end())
      return fail(plan_error(job, fmt::format("field {}: no value for scalar '{}'", slot.field, slot.source)));
    store_element(slot.scalar_dtype, found->second, bytes);
    return {};
  }
  const auto& table = slot.is_of_workspace ? pointers.workspaces : pointers.tensors;
  const auto found = table.find(slot.source);
  if (found == table.end()) return fail(plan_error(job, fmt::format("field {}: no pointer named '{}'", slot.field, slot.source)));
  if (slot.kind != PlanField::Kind::kTensorMap) {
    std::memcpy(bytes, &found->second, sizeof found->second);
    return {};
  }
  if (!pointers.encode_tensor_map) return fail(plan_error(job, fmt::format("field {}: nothing encodes tensor maps here", slot.field)));
  EvaluatedTensorMap map = slot.map;
  map.address = found->second;
  KW_TRY(const TensorMapBytes encoded, pointers.encode_tensor_map(map));
  std::memcpy(bytes, encoded.data(), encoded.size());
  return {};
}

Result<std::array<std::int64_t, 3>> evaluate_shape(const std::array<IntExpr, 3>& shape, const IntBindings& bindings) {
  std::array<std::int64_t, 3> values{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    KW_TRY(values[axis], shape[axis].evaluate(bindings));
  }
  return values;
}

Status check_shape(const KernelJob& job, const PlanLaunch& launch, const std::array<std::int64_t, 3>& grid,
                   const std::array<std::int64_t, 3>& block) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (grid[axis] < 0 || grid[axis] > kMaxGrid[axis]) {
      return fail(plan_error(job, fmt::format("{}: grid axis {} = {}: must be in 0..{}", launch.kernel, axis, grid[axis], kMaxGrid[axis])));
    }
  }
  const bool is_positive = block[0] > 0 && block[1] > 0 && block[2] > 0;
  if (!is_positive || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || block[0] * block[1] * block[2] > 1024) {
    return fail(plan_error(job, fmt::format("{}: block {}x{}x{}: must be 1 to 1024 threads", launch.kernel, block[0], block[1], block[2])));
  }
  return {};
}

}  // namespace

Result<std::vector<EvaluatedLaunch>> evaluate_unbound_launches(const KernelJob& job) {
  const IntBindings bindings = job.problem.bindings(job.plan);
  std::vector<EvaluatedLaunch> result;
  for (const PlanLaunch& launch : job.plan.launches) {
    KW_TRY(const auto grid, evaluate_shape(launch.grid, bindings));
    KW_TRY(const auto block, evaluate_shape(launch.block, bindings));
    KW_TRY(const auto cluster, evaluate_shape(launch.cluster, bindings));
    KW_TRY(const std::int64_t smem_bytes, launch.dynamic_smem_bytes.evaluate(bindings));
    KW_TRY_VOID(check_shape(job, launch, grid, block));
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) continue;
    EvaluatedLaunch evaluated;
    evaluated.kernel = launch.kernel;
    evaluated.is_persistent = launch.is_persistent;
    evaluated.is_dependent = launch.is_dependent && !result.empty();  // of what the plan does not hold it knows nothing
    for (std::size_t axis = 0; axis < 3; ++axis) {
      evaluated.grid[axis] = static_cast<unsigned int>(grid[axis]);
      evaluated.block[axis] = static_cast<unsigned int>(block[axis]);
      evaluated.cluster[axis] = static_cast<unsigned int>(std::max<std::int64_t>(1, cluster[axis]));
    }
    if (smem_bytes < 0 || smem_bytes > (1 << 20))
      return fail(plan_error(job, fmt::format("{}: dynamic shared memory {} B", launch.kernel, smem_bytes)));
    evaluated.dynamic_smem_bytes = static_cast<unsigned int>(smem_bytes);
    for (const PlanParameter& parameter : launch.parameters) {
      Packer packer;
      for (const PlanField& field : parameter.fields) KW_TRY_VOID(pack_field(job, field, bindings, packer, evaluated));
      evaluated.parameter_names.push_back(parameter.name);
      evaluated.parameters.push_back(packer.finish());
    }
    result.push_back(std::move(evaluated));
  }
  return result;
}

Result<std::vector<EvaluatedLaunch>> evaluate_launches(const KernelJob& job, const LaunchPointers& pointers) {
  KW_TRY(std::vector<EvaluatedLaunch> launches, evaluate_unbound_launches(job));
  for (EvaluatedLaunch& launch : launches) {
    for (const LaunchSlot& slot : launch.slots)
      KW_TRY_VOID(fill_slot(job, slot, pointers, launch.parameters[slot.parameter].data() + slot.offset_bytes));
  }
  return launches;
}

Result<std::map<std::string, std::size_t>> workspace_bytes(const KernelJob& job) {
  const IntBindings bindings = job.problem.bindings(job.plan);
  std::map<std::string, std::size_t> sizes;
  for (const PlanWorkspace& workspace : job.plan.workspaces) {
    KW_TRY(const std::int64_t num_bytes, workspace.bytes.evaluate(bindings));
    if (num_bytes < 0) return fail(plan_error(job, fmt::format("workspace {}: {} B", workspace.name, num_bytes)));
    sizes[workspace.name] = static_cast<std::size_t>(num_bytes);
  }
  return sizes;
}

CudaResult<std::shared_ptr<LoadedModule>> LoadedModule::load(const DriverApi& driver, const std::string& cubin) {
  std::shared_ptr<LoadedModule> loaded(new LoadedModule(driver));
  if (const int code = driver.module_load(&loaded->module_, cubin.c_str()); code != 0) {
    loaded->module_ = nullptr;
    CudaFault fault = cuda_fault(driver, code, "cuModuleLoadData");
    int version = 0;
    driver.driver_version(&version);
    if (!is_sticky(code) && code != 2)
      fault.text += fmt::format(" (the driver is for CUDA {}.{}: is the compiler newer?)", version / 1000, version % 1000 / 10);
    return tl::unexpected<CudaFault>(fault);
  }
  return loaded;
}

LoadedModule::~LoadedModule() {
  if (module_ != nullptr) driver_.module_unload(module_);
}

CudaResult<void> LoadedModule::check_parameters(CudaFunction function, const EvaluatedLaunch& launch) const {
  if (driver_.function_parameter == nullptr) return {};
  for (std::size_t index = 0;; ++index) {
    std::size_t offset = 0, num_bytes = 0;
    const bool is_parameter = driver_.function_parameter(function, index, &offset, &num_bytes) == 0;
    if (!is_parameter && index == launch.parameters.size()) return {};
    const std::size_t planned_bytes = index < launch.parameters.size() ? launch.parameters[index].size() : 0;
    if (is_parameter && num_bytes == planned_bytes) continue;
    const std::string name = index < launch.parameters.size() ? launch.parameter_names[index] : "(none)";
    return tl::unexpected<CudaFault>(
        CudaFault{kCodePlanMismatch, fmt::format("{}: parameter {} ({}): {} B in the launch plan, {} B in the kernel", launch.kernel, index,
                                                 name, planned_bytes, is_parameter ? num_bytes : 0)});
  }
}

CudaResult<CudaFunction> LoadedModule::prepare(const EvaluatedLaunch& launch) {
  Function& function = functions_[launch.kernel];
  if (function.handle == nullptr) {
    CudaFunction handle = nullptr;
    KW_CUDA(driver_, "cuModuleGetFunction", driver_.module_function(&handle, module_, launch.kernel.c_str()));
    KW_CUDA_TRY_VOID(check_parameters(handle, launch));
    if (num_ctas(launch.cluster) > kMaxPortableCluster) {
      KW_CUDA(driver_, "cuFuncSetAttribute", driver_.function_set_attribute(handle, kFunctionNonPortableCluster, 1));
    }
    function.handle = handle;
  }
  if (static_cast<int>(launch.dynamic_smem_bytes) > function.max_dynamic_smem_bytes) {
    KW_CUDA(driver_, "cuFuncSetAttribute(shared memory)",
            driver_.function_set_attribute(function.handle, kFunctionMaxDynamicSmem, static_cast<int>(launch.dynamic_smem_bytes)));
    function.max_dynamic_smem_bytes = static_cast<int>(launch.dynamic_smem_bytes);
  }
  return function.handle;
}

CudaLaunchConfig launch_config(const EvaluatedLaunch& launch, CudaStream stream, LaunchAttributes& attributes) {
  attributes = {};
  CudaLaunchConfig config{};
  if (num_ctas(launch.cluster) > 1) {
    CudaLaunchAttribute& attribute = attributes[config.num_attributes++];
    attribute.id = kLaunchAttributeCluster;
    std::copy(launch.cluster.begin(), launch.cluster.end(), attribute.value.cluster);
  }
  if (launch.is_dependent) {
    CudaLaunchAttribute& attribute = attributes[config.num_attributes++];
    attribute.id = kLaunchAttributeDependent;
    attribute.value.is_dependent = 1;
  }
  std::copy(launch.grid.begin(), launch.grid.end(), config.grid);
  std::copy(launch.block.begin(), launch.block.end(), config.block);
  config.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  config.stream = stream;
  config.attributes = config.num_attributes == 0 ? nullptr : attributes.data();
  return config;
}

CudaResult<void> LoadedModule::launch(const EvaluatedLaunch& launch, CudaStream stream) {
  KW_CUDA_TRY(const CudaFunction function, prepare(launch));
  LaunchAttributes attributes;
  const CudaLaunchConfig config = launch_config(launch, stream, attributes);
  std::vector<void*> arguments;
  for (const std::vector<std::byte>& parameter : launch.parameters) arguments.push_back(const_cast<std::byte*>(parameter.data()));
  KW_CUDA(driver_, "cuLaunchKernelEx", driver_.launch(&config, function, arguments.data(), nullptr));
  return {};
}

}  // namespace kw::tuner
