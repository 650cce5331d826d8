// The yardstick of the reader's speed: a bare simdjson on-demand scan of a Chrome trace, one thread, touching ph, name,
// cat, ts, dur, pid and tid of every event. The file is read into a reused, warm buffer; reading it counts.
// Usage: bench_scan FILE [REPEATS]

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/memory.hpp"

namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Sums {
  uint64_t events = 0;
  uint64_t text = 0;
  double time = 0;
};

bool ReadFile(const char* path, char* into, size_t size) {
  const int fd = ::open(path, O_RDONLY);
  if (fd < 0) return false;
  size_t got = 0;
  while (got < size) {
    const ssize_t n = ::read(fd, into + got, size - got);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  ::close(fd);
  return got == size;
}

bool Scan(simdjson::ondemand::parser& parser, const char* data, size_t size, size_t room, Sums& sums) {
  simdjson::ondemand::document document;
  if (parser.iterate(data, size, room).get(document)) return false;
  simdjson::ondemand::array events;
  if (document["traceEvents"].get_array().get(events)) return false;
  for (auto element : events) {
    simdjson::ondemand::object object;
    if (element.get_object().get(object)) return false;
    ++sums.events;
    for (auto field : object) {
      const auto key = field.key().value_unsafe();
      auto value = field.value().value_unsafe();
      if (key == "ph" || key == "name" || key == "cat") {
        sums.text += value.get_raw_json_string().value_unsafe().raw()[0];
      } else if (key == "ts" || key == "dur") {
        double number = 0;
        if (value.get_double().get(number)) return false;
        sums.time += number;
      } else if (key == "pid" || key == "tid") {
        sums.text += value.raw_json_token().size();
      }
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_scan FILE [REPEATS]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 5;
  struct stat info = {};
  if (::stat(argv[1], &info) != 0) return 2;
  const auto size = static_cast<size_t>(info.st_size);
  teller::base::PageBuffer buffer(size + simdjson::SIMDJSON_PADDING);
  simdjson::ondemand::parser parser;
  std::vector<double> times;
  Sums sums;
  for (int i = 0; i <= repeats; ++i) {  // the first round warms the buffers and does not count
    const double start = Seconds();
    sums = {};
    if (!ReadFile(argv[1], buffer.data(), size) || !Scan(parser, buffer.data(), size, buffer.size(), sums)) {
      std::fprintf(stderr, "cannot scan %s\n", argv[1]);
      return 2;
    }
    if (i > 0) times.push_back(Seconds() - start);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("scan events %llu seconds %.4f GB/s %.3f check %.0f\n", static_cast<unsigned long long>(sums.events),
              median, static_cast<double>(size) / 1e9 / median, sums.time + static_cast<double>(sums.text));
  return 0;
}
