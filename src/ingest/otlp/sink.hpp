#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "ingest/otlp/span.hpp"
#include "trace/store.hpp"

namespace teller::ingest::otlp {

/// Collects the spans of one file, whatever their encoding, and puts them into the store.
/// Every span becomes a span of category "otlp" on a lane of the process that its resource tells, its events become
/// instants, and spans that stand for a request of an engine become request records as well. Nothing is in the store
/// before Finish, other than request records, strings and diagnostics.
class StoreSink : public SpanSink {
 public:
  StoreSink(trace::FileRow file, trace::Store& store, const base::Limits& limits);

  void Resource(const std::vector<Field>& fields) override;
  void Scope(std::string_view name) override;
  void Add(Span span) override;
  void Broken(std::string_view why) override;
  void OtherSignal(uint64_t count) override;

  /// Puts what was collected into the store. Call once.
  void Finish();

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // trace, span; hashes where ids are not hex
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return static_cast<size_t>(key.first ^ key.second * 0x9E3779B97F4A7C15u);
    }
  };
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  struct Kept {
    base::Nanos begin = 0;
    base::Nanos duration = 0;
    Key parent_key;
    trace::StringId name;
    uint32_t process = 0;      // index into processes_
    uint32_t parent = kNone;   // index into kept_
    uint32_t request = kNone;  // row of store.request_records of a span that stands for a request
    uint32_t first_field = 0;
    uint32_t fields = 0;
    uint32_t first_event = 0;
    uint32_t events = 0;
    uint32_t retractions = 0;
    uint16_t depth = 0;  // in the tree of parents
    bool has_parent = false;
    bool own_process = false;  // the span itself tells its process (SGLang's thread spans)
    bool other_rank = false;   // of a tensor- or pipeline-parallel rank other than 0
  };
  struct KeptEvent {
    base::Nanos at = 0;
    trace::StringId name;
  };

  std::string Place() const;
  bool CheckTimes(Span& span);
  uint32_t ProcessIndex(const std::string& key, trace::Process process);
  void TellProcess(const Span& span, Kept& kept);
  void KeepFields(const Span& span, Kept& kept);
  void KeepEvents(const Span& span, Kept& kept);
  void LinkParents();
  void InheritProcesses();
  void CheckTotal();
  void JoinPhases();
  void JoinPhase(const Kept& span, trace::RequestRecord& record) const;
  void PutOnLanes(uint32_t process, std::vector<uint32_t> spans, uint8_t category);
  uint8_t Category();

  trace::FileRow file_;
  trace::Store& store_;
  const base::Limits& limits_;
  std::vector<Field> resource_;
  std::string scope_;
  std::string engine_;
  uint32_t process_ = 0;
  std::map<std::string, uint32_t> process_of_;
  std::vector<trace::Process> processes_;
  std::vector<Kept> kept_;
  std::unordered_map<Key, uint32_t, KeyHash> by_id_;
  std::vector<trace::Attribute> fields_;
  std::vector<KeptEvent> events_;
  uint64_t ordinal_ = 0;  // of the next span in the file
  bool phases_ = false;   // some root span may have phases below it
};

}  // namespace teller::ingest::otlp
