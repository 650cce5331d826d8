// Speed of template mining on one core: lines a second, and the ratio to a plain pass that splits the same lines on
// blanks and hashes every word. Rounds are interleaved, every round mines a fresh copy, the best of each counts. Usage:
// bench_logs [LINES] [ROUNDS]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <vector>

#include "logs/grouping_set_for_test.hpp"
#include "logs/template_miner.hpp"

using namespace teller;

namespace {

/// Time that the processor spent on this program: who else uses the machine does not count.
double Seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

size_t SplitAndHash(const trace::Store& store) {
  size_t sum = 0;
  for (const auto& record : store.logs) {
    std::string_view rest = record.message;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(' '), rest.size());
      if (end > 0) sum += std::hash<std::string_view>()(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t lines = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const logs::LabelledSet set = logs::MakeLabelled(logs::TuningStatements(), lines, 1);
  size_t bytes = 0;
  for (const auto& record : set.store.logs) bytes += record.message.size() + 1;
  double mine = 1e9;
  double split = 1e9;
  size_t templates = 0;
  size_t sum = 0;
  std::vector<trace::Store> copies(static_cast<size_t>(std::max(rounds, 1)));
  for (auto& copy : copies) copy.logs = set.store.logs;
  for (auto& copy : copies) {
    double start = Seconds();
    sum += SplitAndHash(set.store);
    split = std::min(split, Seconds() - start);
    start = Seconds();
    templates = logs::MineTemplates(copy).templates.size();
    mine = std::min(mine, Seconds() - start);
  }
  const auto n = static_cast<double>(lines);
  std::printf("lines %zu bytes %zu templates %zu check %zx\n", lines, bytes, templates, sum);
  std::printf("mine %.0f lines/s (%.1f MB/s), split and hash %.0f lines/s, ratio %.2f\n", n / mine,
              static_cast<double>(bytes) / mine / 1e6, n / split, split / mine);
  return 0;
}
