// A cuBLASLt of host memory, on the fake driver: it multiplies as the real one's documentation says (column-major, transposed operands,
// leading dimensions, batches, epilogues) and is as strict about the sizes of attributes. Its algorithms differ in time alone:
// number i takes 30, 20, 25, 40, 41, 42, ... us. Environment:
//   FAKE_CUBLASLT_COUNT   algorithms that the heuristics know (default 3)
//   FAKE_CUBLASLT         what goes wrong: "no_handle", "no_heuristics", "null_heuristics", or KIND:NUMBER for one algorithm: "refuse:1",
//                         "wrong:1", "past_end:1", "workspace:1", "illegal:1", "hang:1", "segfault:1", "not_usable:1"
//   FAKE_CUBLASLT_LOG     a file that gets the name of each call, one a line
//   FAKE_CUBLASLT_VERSION default 130002
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "generator/base/dtype.h"
#include "tests/tuner/device/fake_library_work.h"
#include "tuner/device/cublaslt_api.h"

using namespace kw::tuner;

namespace {

constexpr int kInvalidValue = 7, kNotInitialized = 1, kNotSupported = 15;  // cublasStatus_t

using Attributes = std::map<int, std::vector<std::byte>>;

struct FakeLayout {
  int type = 0;
  std::uint64_t rows = 0, cols = 0;
  std::int64_t leading_dimension = 0;
  Attributes attributes;
};
struct FakeDesc {
  int compute_type = 0, scale_type = 0;
  Attributes attributes;
};

std::string text_from(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}
long number_from(const char* variable, long fallback) {
  const std::string text = text_from(variable);
  return text.empty() ? fallback : std::strtol(text.c_str(), nullptr, 10);
}
void log(const char* call) {
  if (const std::string path = text_from("FAKE_CUBLASLT_LOG"); !path.empty()) std::ofstream(path, std::ios::app) << call << "\n";
}
bool goes_wrong(const char* kind, std::uint64_t algorithm) {
  return text_from("FAKE_CUBLASLT") == kind + (":" + std::to_string(algorithm));
}

int set(Attributes& attributes, const std::map<int, std::size_t>& sizes, int attribute, const void* value, std::size_t num_bytes) {
  const auto known = sizes.find(attribute);
  if (value == nullptr || known == sizes.end() || known->second != num_bytes) return kInvalidValue;
  const auto* bytes = static_cast<const std::byte*>(value);
  attributes[attribute].assign(bytes, bytes + num_bytes);
  return 0;
}
template <typename T>
T get(const Attributes& attributes, int attribute, T fallback) {
  const auto found = attributes.find(attribute);
  if (found != attributes.end()) std::memcpy(&fallback, found->second.data(), sizeof fallback);
  return fallback;
}

kw::DType dtype_of(int type) { return type == 2 ? kw::DType::kF16 : type == 14 ? kw::DType::kBF16 : kw::DType::kF32; }

/// Element [row, col] of batch `batch` as it is stored.
struct Matrix {
  std::byte* data = nullptr;
  kw::DType dtype = kw::DType::kF32;
  std::int64_t leading_dimension = 0, batch_stride = 0;
  bool is_transposed = false;

  std::byte* at(std::int64_t row, std::int64_t col, std::int64_t batch) const {
    if (is_transposed) std::swap(row, col);
    return data + (row + col * leading_dimension + batch * batch_stride) * kw::size_bytes(dtype);
  }
  double load(std::int64_t row, std::int64_t col, std::int64_t batch) const { return kw::load_element(dtype, at(row, col, batch)); }
};

struct Product final : kw::tuner::test::FakeLibraryWork {
  Matrix first, second, out;
  std::byte* bias = nullptr;
  std::int64_t bias_stride = 0, rows = 0, cols = 0, depth = 0, num_batches = 1;
  std::uint32_t epilogue = 1;
  bool is_wrong = false, writes_past_end = false, spoils_workspace = false;
  std::byte* workspace = nullptr;
  std::size_t workspace_bytes = 0;

  double finished(double value, std::int64_t row, std::int64_t batch) const {
    if ((epilogue & 4) != 0) value += kw::load_element(out.dtype, bias + (row + batch * bias_stride) * kw::size_bytes(out.dtype));
    if ((epilogue & 2) != 0) value = value > 0 ? value : 0;
    if ((epilogue & 32) != 0) value = 0.5 * value * (1 + std::tanh(std::sqrt(2 / M_PI) * (value + 0.044715 * value * value * value)));
    return value;
  }
  void run() const override {
    for (std::int64_t batch = 0; batch < num_batches; ++batch) {
      for (std::int64_t col = 0; col < cols; ++col) {
        for (std::int64_t row = 0; row < rows; ++row) {
          double sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) sum += first.load(row, k, batch) * second.load(k, col, batch);
          kw::store_element(out.dtype, finished(sum, row, batch), out.at(row, col, batch));
        }
      }
    }
    if (is_wrong) kw::store_element(out.dtype, 1e4, out.at(rows - 1, cols - 1, num_batches - 1));
    if (writes_past_end) *(out.at(rows - 1, cols - 1, num_batches - 1) + kw::size_bytes(out.dtype)) = std::byte{1};
    if (spoils_workspace) workspace[workspace_bytes] = std::byte{1};
  }
};

Matrix matrix_of(const void* data, CublasLtMatrixLayout handle, bool is_transposed) {
  const auto& layout = *reinterpret_cast<const FakeLayout*>(handle);
  return {static_cast<std::byte*>(const_cast<void*>(data)), dtype_of(layout.type), layout.leading_dimension,
          get<std::int64_t>(layout.attributes, 6, 0), is_transposed};
}

/// Launches a kernel of the fake driver by its name.
int launch(const std::string& name, const void* argument, CudaStream stream) {
  void* driver = dlopen(std::getenv("KERNELWRIGHT_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return kNotInitialized;
  auto* const get_function = reinterpret_cast<decltype(DriverApi::module_function)>(dlsym(driver, "cuModuleGetFunction"));
  auto* const launch_kernel = reinterpret_cast<decltype(DriverApi::launch)>(dlsym(driver, "cuLaunchKernelEx"));
  CudaFunction function = nullptr;
  get_function(&function, nullptr, name.c_str());
  CudaLaunchConfig config{};
  config.stream = stream;
  void* parameters[] = {&argument, &argument, &argument};
  return launch_kernel(&config, function, parameters, nullptr) == 0 ? 0 : 13;  // CUBLAS_STATUS_EXECUTION_FAILED
}

double launch_us(std::uint64_t algorithm) {
  constexpr double kFirst[] = {30, 20, 25};
  return algorithm < 3 ? kFirst[algorithm] : 37 + static_cast<double>(algorithm);
}

}  // namespace

extern "C" {
std::size_t cublasLtGetVersion() { return static_cast<std::size_t>(number_from("FAKE_CUBLASLT_VERSION", 130002)); }
const char* cublasLtGetStatusString(int status) {
  return status == kNotSupported ? "CUBLAS_STATUS_NOT_SUPPORTED" : status == kInvalidValue ? "CUBLAS_STATUS_INVALID_VALUE" : "FAKE_STATUS";
}
int cublasLtCreate(CublasLtHandle* handle) {
  log("create");
  if (text_from("FAKE_CUBLASLT") == "no_handle") return kNotInitialized;
  static int object = 0;
  *handle = reinterpret_cast<CublasLtHandle>(&object);
  return 0;
}
int cublasLtMatmulDescCreate(CublasLtMatmulDesc* desc, int compute_type, int scale_type) {
  log("desc");
  *desc = reinterpret_cast<CublasLtMatmulDesc>(new FakeDesc{compute_type, scale_type, {}});
  return scale_type == 0 && (compute_type == 68 || compute_type == 77) ? 0 : kInvalidValue;
}
int cublasLtMatmulDescDestroy(CublasLtMatmulDesc desc) {
  delete reinterpret_cast<FakeDesc*>(desc);
  return 0;
}
int cublasLtMatmulDescSetAttribute(CublasLtMatmulDesc desc, int attribute, const void* value, std::size_t num_bytes) {
  return set(reinterpret_cast<FakeDesc*>(desc)->attributes, {{3, 4}, {4, 4}, {7, 4}, {8, 8}, {10, 8}}, attribute, value, num_bytes);
}
int cublasLtMatrixLayoutCreate(CublasLtMatrixLayout* layout, int type, std::uint64_t rows, std::uint64_t cols,
                               std::int64_t leading_dimension) {
  log("layout");
  *layout = reinterpret_cast<CublasLtMatrixLayout>(new FakeLayout{type, rows, cols, leading_dimension, {}});
  return leading_dimension >= static_cast<std::int64_t>(rows) ? 0 : kInvalidValue;
}
int cublasLtMatrixLayoutDestroy(CublasLtMatrixLayout layout) {
  delete reinterpret_cast<FakeLayout*>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(CublasLtMatrixLayout layout, int attribute, const void* value, std::size_t num_bytes) {
  return set(reinterpret_cast<FakeLayout*>(layout)->attributes, {{5, 4}, {6, 8}}, attribute, value, num_bytes);
}
int cublasLtMatmulPreferenceCreate(CublasLtPreference* preference) {
  log("preference");
  *preference = reinterpret_cast<CublasLtPreference>(new Attributes);
  return 0;
}
int cublasLtMatmulPreferenceDestroy(CublasLtPreference preference) {
  delete reinterpret_cast<Attributes*>(preference);
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(CublasLtPreference preference, int attribute, const void* value, std::size_t num_bytes) {
  return set(*reinterpret_cast<Attributes*>(preference), {{1, 8}, {5, 4}, {6, 4}, {7, 4}, {8, 4}}, attribute, value, num_bytes);
}
int cublasLtMatmulAlgoGetHeuristic(CublasLtHandle, CublasLtMatmulDesc desc, CublasLtMatrixLayout, CublasLtMatrixLayout,
                                   CublasLtMatrixLayout, CublasLtMatrixLayout, CublasLtPreference, int max_count,
                                   CublasLtHeuristic* results, int* num_results) {
  log("heuristics");
  const std::string mode = text_from("FAKE_CUBLASLT");
  if (mode == "no_heuristics") return kNotSupported;
  const auto& attributes = reinterpret_cast<const FakeDesc*>(desc)->attributes;
  // The documentation: the pointer's value tells the alignment that may be relied on.
  if ((get<std::uint32_t>(attributes, 7, 1) & 4) != 0 && get<const void*>(attributes, 8, nullptr) == nullptr) return kInvalidValue;
  const long known = mode == "null_heuristics" ? 0 : number_from("FAKE_CUBLASLT_COUNT", 3);
  *num_results = static_cast<int>(std::min<long>(known, max_count));
  for (int i = 0; i < *num_results; ++i) {
    results[i] = {};
    results[i].algo.data = {static_cast<std::uint64_t>(i), 0x4b57, 0, 0, 0, 0, 0, 0};
    results[i].state = goes_wrong("not_usable", static_cast<std::uint64_t>(i)) ? kNotSupported : 0;
  }
  return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const CublasLtAlgo* algo, int attribute, void* value, std::size_t num_bytes,
                                         std::size_t* written) {
  if (num_bytes != (attribute >= 7 ? 2u : 4u)) return kInvalidValue;
  const std::uint32_t number = attribute == 0 ? static_cast<std::uint32_t>(algo->data[0]) : static_cast<std::uint32_t>(attribute);
  std::memcpy(value, &number, num_bytes);
  *written = num_bytes;
  return 0;
}
int cublasLtMatmul(CublasLtHandle, CublasLtMatmulDesc desc_handle, const void* alpha, const void* first, CublasLtMatrixLayout first_layout,
                   const void* second, CublasLtMatrixLayout second_layout, const void* beta, const void*, CublasLtMatrixLayout, void* out,
                   CublasLtMatrixLayout out_layout, const CublasLtAlgo* algo, void* workspace, std::size_t workspace_bytes,
                   CudaStream stream) {
  log("matmul");
  if (algo->data[1] != 0x4b57 || *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) return kInvalidValue;
  const std::uint64_t number = algo->data[0];
  if (goes_wrong("refuse", number)) return kNotSupported;
  if (goes_wrong("segfault", number)) std::raise(SIGSEGV);
  if (goes_wrong("illegal", number)) return launch("illegal", nullptr, stream);
  if (goes_wrong("hang", number)) return launch("hang", nullptr, stream);
  const auto& desc = *reinterpret_cast<const FakeDesc*>(desc_handle);
  static std::vector<std::unique_ptr<Product>> products;  // a captured graph points at them
  Product& product = *products.emplace_back(std::make_unique<Product>());
  product.first = matrix_of(first, first_layout, get<std::int32_t>(desc.attributes, 3, 0) == 1);
  product.second = matrix_of(second, second_layout, get<std::int32_t>(desc.attributes, 4, 0) == 1);
  product.out = matrix_of(out, out_layout, false);
  const auto& stored_first = *reinterpret_cast<const FakeLayout*>(first_layout);
  const auto& stored_out = *reinterpret_cast<const FakeLayout*>(out_layout);
  product.rows = static_cast<std::int64_t>(stored_out.rows);
  product.cols = static_cast<std::int64_t>(stored_out.cols);
  product.depth = static_cast<std::int64_t>(product.first.is_transposed ? stored_first.rows : stored_first.cols);
  product.num_batches = get<std::int32_t>(stored_out.attributes, 5, 1);
  product.epilogue = get<std::uint32_t>(desc.attributes, 7, 1);
  product.bias = static_cast<std::byte*>(const_cast<void*>(get<const void*>(desc.attributes, 8, nullptr)));
  product.bias_stride = get<std::int64_t>(desc.attributes, 10, 0);
  product.is_wrong = goes_wrong("wrong", number);
  product.writes_past_end = goes_wrong("past_end", number);
  product.spoils_workspace = goes_wrong("workspace", number);
  product.workspace = static_cast<std::byte*>(workspace);
  product.workspace_bytes = workspace_bytes;
  const kw::tuner::test::FakeLibraryWork* work = &product;
  return launch("library_call_" + std::to_string(static_cast<int>(launch_us(number))) + "us", work, stream);
}
}
