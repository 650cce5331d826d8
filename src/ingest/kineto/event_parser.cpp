#include "ingest/kineto/event_parser.hpp"

#include <simdjson.h>

#include <cstring>
#include <string>

#include "ingest/common/decimal.hpp"
#include "ingest/common/text.hpp"
#include "ingest/kineto/category.hpp"
#include "ingest/kineto/diagnostics.hpp"
#include "ingest/kineto/event_fields.hpp"
#include "ingest/kineto/event_sink.hpp"
#include "ingest/kineto/splitter.hpp"

namespace teller::ingest {

namespace {

using simdjson::ondemand::json_type;

/// True when the raw key (which starts behind its opening quote, in padded memory) is `text`.
template <size_t N>
bool Is(const char* key, const char (&text)[N]) {
  return std::memcmp(key, text, N - 1) == 0 && key[N - 1] == '"';
}

/// Where the raw text of a top-level field of an event goes; null when the field is not used.
RawValue* FieldSlot(const char* key, EventFields& fields) {
  switch (key[0]) {
    case 'p':
      if (Is(key, "ph")) return &fields.ph;
      if (Is(key, "pid")) return &fields.pid;
      return nullptr;
    case 'c': return Is(key, "cat") ? &fields.cat : nullptr;
    case 'n': return Is(key, "name") ? &fields.name : nullptr;
    case 't':
      if (Is(key, "ts")) return &fields.ts;
      if (Is(key, "tid")) return &fields.tid;
      return nullptr;
    case 'd': return Is(key, "dur") ? &fields.dur : nullptr;
    case 'i': return Is(key, "id") ? &fields.id : nullptr;
    case 'b': return Is(key, "bind_id") ? &fields.bind_id : nullptr;
    case 'f':
      if (Is(key, "flow_in")) return &fields.flow_in;
      if (Is(key, "flow_out")) return &fields.flow_out;
      return nullptr;
    default: return nullptr;
  }
}

/// The same for args.
RawValue* ArgSlot(const char* key, EventArgs& args) {
  switch (key[0]) {
    case 'E': return Is(key, "External id") ? &args.external_id : nullptr;
    case 'e': return Is(key, "external id") ? &args.external_id : nullptr;
    case 'c': return Is(key, "correlation") ? &args.correlation : nullptr;
    case 'g': return Is(key, "graph node id") ? &args.graph_node : nullptr;
    case 'd':
      if (Is(key, "device")) return &args.device;
      if (Is(key, "dtype")) return &args.dtype;
      return nullptr;
    case 'k': return Is(key, "kernel") ? &args.kernel : nullptr;
    case 's': return Is(key, "stream") ? &args.stream : nullptr;
    case 'b': return Is(key, "bytes") ? &args.bytes : nullptr;
    case 'I':
      if (Is(key, "Input Dims")) return &args.input_dims;
      if (Is(key, "Input type")) return &args.input_types;
      if (Is(key, "In msg nelems")) return &args.in_elements;
      return nullptr;
    case 't': return Is(key, "tensor") ? &args.label : nullptr;
    case 'P':
      if (Is(key, "Python id")) return &args.python_id;
      if (Is(key, "Python parent id")) return &args.python_parent;
      if (Is(key, "Python module id")) return &args.python_module;
      if (Is(key, "Process Group Name")) return &args.group;
      if (Is(key, "Process Group Ranks")) return &args.group_ranks;
      return nullptr;
    case 'C': return Is(key, "Collective name") ? &args.collective : nullptr;
    case 'O': return Is(key, "Out msg nelems") ? &args.out_elements : nullptr;
    case 'S': return Is(key, "Seq") ? &args.sequence : Is(key, "Src Rank") ? &args.peer : nullptr;
    case 'D': return Is(key, "Dst Rank") ? &args.peer : nullptr;
    case 'G': return Is(key, "Group size") ? &args.group_size : nullptr;
    case 'n': return Is(key, "name") ? &args.name : nullptr;
    case 'l': return Is(key, "labels") ? &args.labels : nullptr;
    default: return nullptr;
  }
}

/// True when the document was read to its last token.
bool AtEnd(simdjson::ondemand::document& document) {
  const char* next = nullptr;
  return document.current_location().get(next) == simdjson::OUT_OF_BOUNDS;
}

std::string_view KeyText(const char* key) {
  const char* end = key;
  while (*end != '"') end += *end == '\\' ? 2 : 1;  // a key is a valid string: the first stage has seen its end
  return {key, static_cast<size_t>(end - key)};
}

}  // namespace

void EventArgs::Clear() {
  std::vector<RawArg> keep = std::move(scalars);
  keep.clear();
  *this = {};
  scalars = std::move(keep);
}

std::string_view Trim(RawValue raw) {
  while (!raw.empty() && (raw.back() == ' ' || raw.back() == '\n' || raw.back() == '\r' || raw.back() == '\t')) {
    raw.remove_suffix(1);
  }
  return raw;
}

class EventParser::Impl {
 public:
  Impl(Worker& worker, uint32_t worker_index, const base::Limits& limits)
      : worker_(worker), worker_index_(worker_index), limits_(limits), sink_(worker, draft_) {}

  std::unique_ptr<Block> Parse(const Window& window, trace::FileRow file) {
    Begin(file);
    const bool fine = !window.deep && ParseWindow(window.text(), window.offset);
    if (!fine) {
      Begin(file);
      ParseOneByOne(window.text(), window.offset);
    }
    return builder_.Build(draft_, worker_, worker_index_);
  }

 private:
  void Begin(trace::FileRow file) {
    draft_.Clear();
    worker_.strings.BeginBlock();
    worker_.lanes.BeginBlock();
    worker_.categories.BeginBlock();
    sink_.Begin(file);
  }

  /// The fast way: one document for the whole window. False when any element is not valid.
  bool ParseWindow(std::string_view text, uint64_t offset) {
    simdjson::ondemand::document document;
    if (parser_.iterate(text.data(), text.size(), text.size() + kParserPadding).get(document)) return false;
    simdjson::ondemand::array array;
    if (document.get_array().get(array)) return false;
    const char* origin = text.data() + 1;  // behind the bracket that the reader put there
    for (auto element : array) {
      simdjson::ondemand::value value;
      if (element.get(value)) return false;
      const std::string_view token = value.raw_json_token();
      if (!ParseElement(value, offset + static_cast<uint64_t>(token.data() - origin))) return false;
    }
    return AtEnd(document);
  }

  bool ParseElement(simdjson::ondemand::value value, uint64_t at) {
    simdjson::ondemand::object object;
    if (value.raw_json_token().front() != '{') {
      json_type type;
      if (value.type().get(type)) return false;
      simdjson::ondemand::array skipped;
      if (type == json_type::array && value.get_array().get(skipped)) return false;
      sink_.NotAnEvent(at);
      return true;
    }
    if (value.get_object().get(object)) return false;
    return ParseEvent(object, at);
  }

  bool ParseEvent(simdjson::ondemand::object& object, uint64_t at) {
    fields_ = {};
    args_.Clear();
    bool empty = true;
    for (auto entry : object) {
      empty = false;
      if (entry.error()) return false;
      // By reference: copies of these small objects stall on partly forwarded stores, one per field.
      auto&& field = std::move(entry).value_unsafe();
      const simdjson::ondemand::raw_json_string key = field.key();
      simdjson::ondemand::value& value = field.value();
      if (RawValue* slot = FieldSlot(key.raw(), fields_); slot != nullptr) {
        *slot = value.raw_json_token();
      } else if (Is(key.raw(), "args") && value.raw_json_token().front() == '{') {
        args_.want_scalars = sink_.WantsScalars(fields_);
        if (!ParseArgs(value)) return false;
      }
    }
    if (empty) {
      sink_.EmptyElement(at);
    } else {
      sink_.Event(fields_, args_, at);
    }
    return true;
  }

  bool ParseArgs(simdjson::ondemand::value& object_value) {
    simdjson::ondemand::object object;
    if (object_value.get_object().get(object)) return false;
    args_.present = true;
    for (auto entry : object) {
      if (entry.error()) return false;
      // By reference: copies of these small objects stall on partly forwarded stores, one per field.
      auto&& field = std::move(entry).value_unsafe();
      const simdjson::ondemand::raw_json_string key = field.key();
      simdjson::ondemand::value& value = field.value();
      const std::string_view token = value.raw_json_token();
      RawValue* slot = ArgSlot(key.raw(), args_);
      if (token.front() == '[' && slot != nullptr) {
        simdjson::ondemand::array array;
        if (value.get_array().get(array) || array.raw_json().get(*slot)) return false;
        continue;
      }
      if (slot != nullptr) *slot = token;
      if (args_.want_scalars && token.front() != '{' && token.front() != '[') {
        args_.scalars.push_back({KeyText(key.raw()), token});
      }
    }
    return true;
  }

  /// The slow way, for windows with damage: each element is a document of its own, so that one bad element costs no
  /// other. Elements are found by their brackets.
  void ParseOneByOne(std::string_view text, uint64_t offset) {
    const std::string_view inside = text.substr(1, text.size() - 2);
    size_t at = 0;
    while (at < inside.size()) {
      if (std::strchr(" \n\r\t,", inside[at]) != nullptr) {
        ++at;
        continue;
      }
      const size_t length = ElementLength(inside.substr(at));
      ParseAlone(inside.substr(at, length), offset + at);
      at += length;
    }
  }

  /// Up to the bracket that closes the element, or up to the next comma for a scalar.
  static size_t ElementLength(std::string_view text) {
    int64_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = !in_string;
      } else if (in_string) {
        continue;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (--depth <= 0) return i + 1;
      } else if (c == ',' && depth == 0) {
        return i;
      }
    }
    return text.size();
  }

  void ParseAlone(std::string_view text, uint64_t at) {
    if (FindCutPlain(text).deepest > limits_.max_json_depth) {
      sink_.Bad(kineto::kTooDeep, at, text);
      return;
    }
    if (text.front() != '{' && text.front() != '[') {  // a scalar cannot be a document of its own kind here
      sink_.NotAnEvent(at);
      return;
    }
    std::string repaired;
    if (MakeValidText(text, repaired)) sink_.Repaired(kineto::kInvalidUtf8, at);
    repaired.reserve(repaired.size() + kParserPadding);
    const uint64_t read = draft_.tally.read;
    simdjson::ondemand::document document;
    simdjson::ondemand::value value;
    const bool fine =
        !parser_.iterate(repaired.data(), repaired.size(), repaired.size() + kParserPadding).get(document) &&
        !document.get_value().get(value) && ParseElement(value, at) && AtEnd(document);
    if (!fine && draft_.tally.read == read) sink_.Bad(kineto::kBadEvent, at, text);
  }

  Worker& worker_;
  uint32_t worker_index_;
  const base::Limits limits_;
  simdjson::ondemand::parser parser_;
  Draft draft_;
  EventSink sink_;
  BlockBuilder builder_;
  EventFields fields_;
  EventArgs args_;
};

EventParser::EventParser(Worker& worker, uint32_t worker_index, const base::Limits& limits)
    : impl_(std::make_unique<Impl>(worker, worker_index, limits)) {}
EventParser::~EventParser() = default;

std::unique_ptr<Block> EventParser::Parse(const Window& window, trace::FileRow file) {
  return impl_->Parse(window, file);
}

}  // namespace teller::ingest
