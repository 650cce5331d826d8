#include "inject/sim/trace_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <utility>

namespace teller::inject::sim {

namespace {

constexpr size_t kPiece = 64 << 10;  // small enough for a thousand ranks at once

}  // namespace

TraceFile::TraceFile(std::string path, TraceOwner owner, Nanos start)
    : path_(std::move(path)), owner_(std::move(owner)), rng_(owner_.seed), pid_text_(std::to_string(owner_.pid)) {
  // Kineto counts from a round time of some months before.
  base_ = start / (1000 * base::kSecond) * (1000 * base::kSecond) - 7'000'000 * base::kSecond;
  buffer_.reserve(kPiece + 4096);
  buffer_ = fmt::format(
      "{{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {{\"id\": {}, \"name\": \"{}\", \"totalGlobalMem\": "
      "85017624576, "
      "\"computeMajor\": 9, \"computeMinor\": 0, \"maxThreadsPerBlock\": 1024, \"warpSize\": 32, \"numSms\": 132}}\n  "
      "],\n"
      "  \"cupti_version\": 26,\n  \"cuda_runtime_version\": 12080,\n  \"cuda_driver_version\": 12080,\n"
      "  \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}, \"pg_count\": 2, "
      "\"pg_config\": {}, "
      "\"nccl_version\": \"2.26.2\"}},\n  \"record_shapes\": 1,\n  \"displayTimeUnit\": \"ms\",\n"
      "  \"baseTimeNanoseconds\": {},\n  \"traceEvents\": [",
      owner_.device, owner_.device_name, owner_.rank, owner_.world, owner_.groups, base_);
  const auto named = [&](int pid, const std::string& labels, const char* lead) {
    buffer_ += fmt::format("{}\n  {{\"name\": \"process_name\", \"ph\": \"M\", \"ts\": ", lead);
    Stamp(start - base_);
    buffer_ += fmt::format(
        ", \"pid\": {}, \"tid\": 0, \"args\": {{\"name\": \"{}\"}}}},\n  {{\"name\": \"process_labels\", \"ph\": "
        "\"M\", \"ts\": ",
        pid, owner_.process);
    Stamp(start - base_);
    buffer_ += fmt::format(", \"pid\": {}, \"tid\": 0, \"args\": {{\"labels\": \"{}\"}}}}", pid, labels);
  };
  named(owner_.pid, "CPU", "");
  named(owner_.device, fmt::format("GPU {}", owner_.device), ",");
}

bool TraceFile::Lost() {
  return owner_.lost > 0 && rng_.Unit() < owner_.lost;
}

void TraceFile::Number(uint64_t value) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  buffer_.append(text, end);
}

void TraceFile::Stamp(Nanos at) {
  char text[32];
  char* end = std::to_chars(text, text + 24, at / 1000).ptr;
  const int rest = static_cast<int>(at % 1000);
  *end++ = '.';
  *end++ = static_cast<char>('0' + rest / 100);
  *end++ = static_cast<char>('0' + rest / 10 % 10);
  *end++ = static_cast<char>('0' + rest % 10);
  buffer_.append(text, end);
}

void TraceFile::Begin(std::string_view category, std::string_view quoted_name, int64_t pid, int64_t tid, Nanos begin,
                      Nanos end) {
  const Nanos first = owner_.clock.Read(begin) - base_;
  const Nanos last = owner_.clock.Read(end) - base_;
  buffer_ += ",\n  {\"ph\": \"X\", \"cat\": \"";
  buffer_ += category;
  buffer_ += "\", \"name\": ";
  buffer_ += quoted_name;
  buffer_ += ", \"pid\": ";
  Number(pid);
  buffer_ += ", \"tid\": ";
  Number(tid);
  buffer_ += ", \"ts\": ";
  Stamp(first);
  buffer_ += ", \"dur\": ";
  Stamp(last - first);
}

void TraceFile::Close() {
  if (buffer_.size() > kPiece) Piece();
}

void TraceFile::Piece() {
  std::FILE* file = failed_ ? nullptr : std::fopen(path_.c_str(), bytes_ == 0 ? "wb" : "ab");
  const bool written = file != nullptr && std::fwrite(buffer_.data(), 1, buffer_.size(), file) == buffer_.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  failed_ = failed_ || !written || !closed;
  bytes_ += buffer_.size();
  buffer_.clear();
}

void TraceFile::Span(std::string_view category, std::string_view quoted_name, Nanos begin, Nanos end,
                     std::string_view args) {
  Begin(category, quoted_name, owner_.pid, owner_.pid, begin, end);
  buffer_ += ", \"args\": {";
  buffer_ += args;
  buffer_ += "}}";
  Close();
}

void TraceFile::Operator(std::string_view quoted_name, Nanos begin, Nanos end, uint64_t id, std::string_view inputs) {
  if (Lost()) return;
  Begin("cpu_op", quoted_name, owner_.pid, owner_.pid, begin, end);
  buffer_ += ", \"args\": {\"External id\": ";
  Number(id);
  buffer_ += ", \"Record function id\": 0";
  if (!inputs.empty()) {
    buffer_ += ", ";
    buffer_ += inputs;
  }
  buffer_ += ", \"Ev Idx\": ";
  Number(operators_++);
  buffer_ += "}}";
  Close();
}

void TraceFile::Call(std::string_view quoted_name, int cbid, Nanos begin, Nanos end, uint64_t id, uint64_t correlation,
                     bool flow) {
  if (Lost()) return;
  Begin("cuda_runtime", quoted_name, owner_.pid, owner_.pid, begin, end);
  buffer_ += ", \"args\": {\"External id\": ";
  Number(id);
  buffer_ += ", \"cbid\": ";
  Number(cbid);
  buffer_ += ", \"correlation\": ";
  Number(correlation);
  buffer_ += "}}";
  if (flow) {
    buffer_ += ",\n  {\"ph\": \"s\", \"id\": ";
    Number(correlation);
    buffer_ += ", \"pid\": ";
    buffer_ += pid_text_;
    buffer_ += ", \"tid\": ";
    buffer_ += pid_text_;
    buffer_ += ", \"ts\": ";
    Stamp(owner_.clock.Read(begin) - base_);
    buffer_ += ", \"cat\": \"ac2g\", \"name\": \"ac2g\"}";
  }
  Close();
}

void TraceFile::Work(std::string_view category, const KernelText& text, int stream, Nanos begin, Nanos end, uint64_t id,
                     uint64_t correlation) {
  if (Lost()) return;
  Begin(category, text.name, owner_.device, stream, begin, end);
  buffer_ += ", \"args\": {\"External id\": ";
  Number(id);
  if (category == "kernel") buffer_ += ", \"queued\": 0";
  buffer_ += ", \"device\": ";
  Number(owner_.device);
  buffer_ += ", \"context\": 1, \"stream\": ";
  Number(stream);
  buffer_ += ", \"correlation\": ";
  Number(correlation);
  buffer_ += text.args;
  buffer_ += "}},\n  {\"ph\": \"f\", \"id\": ";
  Number(correlation);
  buffer_ += ", \"pid\": ";
  Number(owner_.device);
  buffer_ += ", \"tid\": ";
  Number(stream);
  buffer_ += ", \"ts\": ";
  Stamp(owner_.clock.Read(begin) - base_);
  buffer_ += ", \"cat\": \"ac2g\", \"name\": \"ac2g\", \"bp\": \"e\"}";
  Close();
}

void TraceFile::DeviceSpan(std::string_view quoted_name, int stream, Nanos begin, Nanos end, uint64_t id) {
  Begin("gpu_user_annotation", quoted_name, owner_.device, stream, begin, end);
  buffer_ += ", \"args\": {\"External id\": ";
  Number(id);
  buffer_ += "}}";
  Close();
}

base::Status TraceFile::Finish() {
  buffer_ += fmt::format("\n  ],\n  \"traceName\": \"/tmp/tmp{:08x}.json\"\n}}\n", owner_.seed & 0xffffffffu);
  Piece();
  if (failed_) return base::Error{base::Code::kUnreadable, "cannot be written; is the disk full?", path_};
  return {};
}

}  // namespace teller::inject::sim
