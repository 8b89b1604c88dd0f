// Mutated specs: the examples and the bad cases with bytes, words and lines changed at random (fixed seed). No input may crash, and what is
// accepted must print as a spec of the same identity. tests/fuzz/spec_fuzz.cpp does the same under libFuzzer for longer.
// KW_NUM_MUTATIONS sets the number.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/spec/spec_helpers.h"

namespace kw::generator {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> corpus() {
  std::vector<fs::path> paths;
  for (const char* folder : {"examples", "tests/errors"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(KW_SOURCE_DIR) / folder)) {
      if (entry.path().string().ends_with(".op.toml")) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

/// Pieces that reach deep into the checker.
const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = {"m",
                                                  "n",
                                                  "k",
                                                  "M",
                                                  "N",
                                                  "K",
                                                  "A",
                                                  "B",
                                                  "out",
                                                  "acc",
                                                  "bias",
                                                  "0",
                                                  "1",
                                                  "9007199254740992",
                                                  "-1",
                                                  "inf",
                                                  "nan",
                                                  "true",
                                                  "\"any\"",
                                                  "sum[k](",
                                                  "softmax[n](",
                                                  "cumsum[n](",
                                                  "topk[k](A[m,k], n)",
                                                  "where(m < n, ",
                                                  "new(out)[m,n]",
                                                  "cast(acc[m,n], f16)",
                                                  " // ",
                                                  " % ",
                                                  " ^ ",
                                                  " / ",
                                                  " * ",
                                                  "[",
                                                  "]",
                                                  "(",
                                                  ")",
                                                  ",",
                                                  "=",
                                                  "\n",
                                                  "\"",
                                                  "strides = [\"any\", 1], ",
                                                  "list = \"M\", ",
                                                  "role = \"inout\"",
                                                  "range = [0, 1], ",
                                                  "[index]\nk = { extent = \"K\", below = \"M\" }\n",
                                                  "[scalars]\ns = \"1/M\"\n",
                                                  "matmul(A, B)",
                                                  "rmsnorm(A, bias)",
                                                  " -> ",
                                                  "i32",
                                                  "f64",
                                                  "bool",
                                                  "m*N + n",
                                                  "m//2",
                                                  "(M - N)",
                                                  "mean[k](",
                                                  "argmax[k](",
                                                  "max(",
                                                  "K - K",
                                                  "M * 1099511627776"};
  return kWords;
}

std::string mutated(std::string text, const std::vector<std::string>& texts, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return limit == 0 ? std::size_t{0} : static_cast<std::size_t>(random() % limit); };
  const std::size_t num_changes = 1 + below(4);
  for (std::size_t change = 0; change < num_changes; ++change) {
    const std::size_t position = below(text.size() + 1);
    switch (below(6)) {
      case 0:
        text.insert(position, words()[below(words().size())]);
        break;
      case 1:
        text.erase(position, 1 + below(8));
        break;
      case 2:
        text.replace(position, std::min<std::size_t>(1 + below(3), text.size() - position), words()[below(words().size())]);
        break;
      case 3: {  // a piece of another spec
        const std::string& other = texts[below(texts.size())];
        const std::size_t from = below(other.size());
        text.insert(position, other.substr(from, below(80)));
        break;
      }
      case 4: {  // a line again
        const std::size_t start = text.rfind('\n', position), end = text.find('\n', position);
        if (start != std::string::npos && end != std::string::npos && end > start) text.insert(end, text.substr(start, end - start));
        break;
      }
      default:
        if (position < text.size()) text[position] = static_cast<char>(random() % 256);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("mutated specs never crash, and accepted ones print as themselves") {
  const std::vector<std::string> texts = corpus();
  REQUIRE_FALSE(texts.empty());
  const char* wanted = std::getenv("KW_NUM_MUTATIONS");
  const int num_mutations = wanted != nullptr ? std::atoi(wanted) : 5000;
  std::mt19937 random(20240229);
  int num_accepted = 0;
  for (int i = 0; i < num_mutations; ++i) {
    const std::string text =
        mutated(texts[random() % (random() % 2 == 0 ? 4 : texts.size())], texts, random);  // the first four are examples
    const Checked checked = check_text(text);
    const bool is_refused = !checked.messages.empty();
    if (is_refused == (checked.program != nullptr)) FAIL(text);
    if (!checked.program) continue;
    ++num_accepted;
    const Checked again = check_text(to_text(*checked.program));
    const bool is_same = again.program && identity(*again.program) == identity(*checked.program);
    if (!is_same) FAIL(text << "\n---- printed\n" << to_text(*checked.program) << "\n----\n" << again.messages);
  }
  CHECK(num_accepted > 0);
}

}  // namespace kw::generator
