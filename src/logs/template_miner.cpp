#include "logs/template_miner.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "logs/mask.hpp"
#include "logs/word_table.hpp"

namespace teller::logs {

namespace {

constexpr size_t kMaxWords = 64;  // longer messages are dumps; their head tells their shape
constexpr size_t kMaxParameters = 48;
constexpr size_t kMaxParameterBytes = 128;
constexpr size_t kMaxBucket = 256;      // candidates compared per message
constexpr size_t kMaxKnown = 1u << 20;  // messages whose masked form is remembered
constexpr size_t kWordsPerChange = 7;   // constant words that must agree for one plain word to differ
constexpr size_t kManyTails = 8;        // different beginnings of a text that no programmer wrote
constexpr size_t kFreeTails = 3;        // shapes that differ in nothing but the text behind a colon

using WordIds = std::vector<uint32_t>;

uint64_t Mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ULL) * (b ^ 0xD6E8FEB86659FD93ULL);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

template <class Unsigned>
uint64_t Load(const char* at) {
  Unsigned value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Words are short: no loop for most of them, and never a copy of unknown length.
uint64_t HashText(std::string_view text) {
  const char* at = text.data();
  const size_t n = text.size();
  if (n < 4) {
    if (n == 0) return 0;
    const auto byte = [at](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(at[i])); };
    return Mix(n, byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16);
  }
  if (n < 8) return Mix(n, Load<uint32_t>(at) | Load<uint32_t>(at + n - 4) << 32);
  uint64_t hash = n;
  for (size_t i = 0; i + 8 < n; i += 8) hash = Mix(hash, Load<uint64_t>(at + i));
  return Mix(hash, Load<uint64_t>(at + n - 8));
}

/// From the hash of a message's masked words to its shape: open addressing, because it is asked once a record.
class KnownForms {
 public:
  KnownForms() : slots_(1u << 12) {}

  /// The shape, or 0.
  uint32_t Find(uint64_t key) const {
    for (size_t i = key & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].shape == 0 || slots_[i].key == key) return slots_[i].shape;
    }
  }
  void Add(uint64_t key, uint32_t shape) {
    if (used_ >= kMaxKnown) return;
    if (2 * ++used_ > slots_.size()) Grow();
    Put(key, shape);
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t shape = 0;
  };
  void Put(uint64_t key, uint32_t shape) {
    size_t i = key & (slots_.size() - 1);
    while (slots_[i].shape != 0) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = {key, shape};
  }
  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.shape != 0) Put(slot.key, slot.shape);
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

/// Constant words and words that vary (WordTable::kAny) of messages that are thought to be of one statement.
struct Shape {
  WordIds words;
  trace::LogSource source = trace::LogSource::kUnknown;
  uint32_t joined = 0;   ///< shape that this one became part of; 0 = it stands for itself
  uint32_t free_at = 0;  ///< words before a free text; 0 = none
  uint64_t count = 0;
};

/// The words before a text that may be free.
struct Head {
  size_t at = 0;                 ///< number of words
  uint32_t free = 0;             ///< the shape with a free text; 0 = not known to be free
  std::vector<uint32_t> shapes;  ///< that begin so
};

/// How well a message fits a shape.
struct Fit {
  size_t equal = 0;
  size_t names = 0;  ///< words that differ where names and values stand
  size_t plain = 0;  ///< words of language that differ
  bool possible = true;
  bool good() const {
    return possible && names <= equal && plain * kWordsPerChange <= equal && (equal > 0 || names + plain == 0);
  }
  int64_t score() const {
    return 4 * static_cast<int64_t>(equal) - 3 * static_cast<int64_t>(names) - 8 * static_cast<int64_t>(plain);
  }
};

/// The part of a message that its shape is made of. An access line's reason phrase follows from its status.
std::string_view Said(const trace::LogRecord& record) {
  const std::string_view message = record.message;
  if (record.source != trace::LogSource::kUvicorn) return message;
  const size_t mark = message.find(" HTTP/");
  const size_t close = mark == std::string_view::npos ? mark : message.find("\" ", mark);
  if (close == std::string_view::npos) return message;
  return message.substr(0, message.find(' ', close + 2));
}

class Miner {
 public:
  Miner(trace::Store& store, const MineOptions& options) : store_(store), options_(options) {}

  TemplateTable Run() {
    seen_.reserve(4 * store_.logs.size());
    seen_ends_.reserve(store_.logs.size());
    for (size_t row = 0; row < store_.logs.size(); ++row) Assign(row);
    for (size_t head = heads_known_.size(); head-- > 0;) {
      if (heads_known_[head].free == 0) JoinTails(static_cast<uint32_t>(head));
    }
    Number();
    // Words may have turned out to vary later on: parameters are read with the final shapes.
    for (size_t row = 0; row < store_.logs.size(); ++row) Extract(row);
    return std::move(table_);
  }

 private:
  /// Hash of the masked words; they themselves are only kept where the hash is new.
  uint64_t HashWords(const trace::LogRecord& record) {
    uint64_t hash = static_cast<uint64_t>(record.source) + 1;
    WordWalker walker(Said(record));
    std::string_view word;
    bool plain = false;
    uint8_t n = 0;
    const char* const begin = record.message.data();
    const size_t first = seen_.size();
    for (; n < kMaxWords && walker.Next(word, plain); ++n) {
      if (!plain) {
        holes_.clear();
        MaskWordInto(word, masked_, &holes_);
        for (const Hole& hole : holes_) {
          if (seen_.size() - first >= kMaxParameters) break;
          seen_.push_back({.offset = static_cast<uint32_t>(hole.text.data() - begin),
                           .length = static_cast<uint16_t>(std::min(hole.text.size(), kMaxParameterBytes)),
                           .word = n,
                           .kind = hole.kind});
        }
        word = masked_;
      }
      hash = Mix(hash, HashText(word));
    }
    seen_ends_.push_back(seen_.size());
    return hash;
  }

  void ReadWords(const trace::LogRecord& record) {
    words_.clear();
    WordWalker walker(Said(record));
    std::string_view word;
    bool plain = false;
    while (words_.size() < kMaxWords && walker.Next(word, plain)) {
      MaskWordInto(word, masked_, nullptr);
      words_.push_back(table_of_words_.Id(masked_));
    }
  }

  void Assign(size_t row) {
    trace::LogRecord& record = store_.logs[row];
    const uint64_t key = HashWords(record);
    uint32_t shape = known_.Find(key);
    if (shape == 0) {
      ReadWords(record);
      shape = FindShape(row);
      if (shape != 0) known_.Add(key, shape);
    }
    record.template_id = shape;
    if (shape == 0) {
      ++table_.beyond_limit;
    } else {
      ++shapes_[shape - 1].count;
    }
  }

  /// Messages compared with each other: same grammar, same number of words, same first word unless that is a name.
  uint64_t BucketOf(trace::LogSource source) const {
    const bool constant = !words_.empty() && table_of_words_[words_[0]].kind == WordKind::kPlain;
    const uint64_t first = constant ? table_of_words_[words_[0]].skeleton : 0;
    return (static_cast<uint64_t>(source) << 48) | (static_cast<uint64_t>(words_.size()) << 40) | first;
  }

  Fit FitOf(const WordIds& shape) const {
    Fit fit;
    bool value = false;  // behind "key:" and "=" stands a value
    for (size_t i = 0; i < shape.size() && fit.possible; ++i) {
      const Word& word = table_of_words_[words_[i]];
      if (shape[i] == WordTable::kAny) {
        value = word.leads;
        continue;
      }
      const Word& other = table_of_words_[shape[i]];
      const bool named = i + 1 < shape.size() && table_of_words_[words_[i + 1]].text == "=";
      if (word.skeleton == other.skeleton) {
        fit.equal += word.kind == WordKind::kMarks ? 0 : 1;
      } else if ((word.key && other.key) || named) {
        fit.possible = false;
      } else if (value || word.kind != WordKind::kPlain || other.kind != WordKind::kPlain) {
        const bool marks = word.kind == WordKind::kMarks && other.kind == WordKind::kMarks;
        fit.possible = !marks || word.holes || other.holes;
        ++fit.names;
      } else {
        ++fit.plain;
      }
      value = word.leads;
    }
    return fit;
  }

  uint32_t FindShape(size_t row) {
    ReadHeads(store_.logs[row].source);
    for (const uint32_t head_row : heads_) {
      const uint32_t free = heads_known_[head_row].free;
      if (free == 0) continue;
      WordIds& head = shapes_[free - 1].words;
      for (size_t i = 0; i < head.size(); ++i) head[i] = table_of_words_.Join(head[i], words_[i]);
      return free;
    }
    auto& bucket = buckets_[BucketOf(store_.logs[row].source)];
    uint32_t best = 0;
    int64_t score = std::numeric_limits<int64_t>::min();
    for (const uint32_t id : bucket) {
      if (shapes_[id - 1].joined != 0 || shapes_[id - 1].free_at != 0) continue;
      const Fit fit = FitOf(shapes_[id - 1].words);
      if (!fit.good() || fit.score() <= score) continue;
      score = fit.score();
      best = id;
    }
    if (best == 0) return Grow(row, bucket);
    WordIds& shape = shapes_[best - 1].words;
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = table_of_words_.Join(shape[i], words_[i]);
    return best;
  }

  uint32_t Grow(size_t row, std::vector<uint32_t>& bucket) {
    if (shapes_.size() >= options_.max_templates || bucket.size() >= kMaxBucket) return 0;
    const auto id = static_cast<uint32_t>(shapes_.size() + 1);
    shapes_.push_back({.words = words_, .source = store_.logs[row].source});
    bucket.push_back(id);
    for (const uint32_t head : heads_) heads_known_[head].shapes.push_back(id);
    // The longest head first: what is free behind it makes nothing of a shorter one free. Looked at when it doubled.
    for (size_t k = heads_.size(); k-- > 0;) {
      const size_t n = heads_known_[heads_[k]].shapes.size();
      if (n >= kFreeTails && (n & (n - 1)) <= 1) JoinTails(heads_[k]);
    }
    return id;
  }

  /// "failed to load 'x': any text": the words up to a colon behind a sentence. Names in them are open.
  void ReadHeads(trace::LogSource source) {
    heads_.clear();
    uint64_t hash = static_cast<uint64_t>(source) + 1;
    size_t sentence = 0;
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      const Word& word = table_of_words_[words_[i]];
      hash = Mix(hash, word.kind == WordKind::kName ? 0 : word.skeleton);
      sentence += word.kind == WordKind::kPlain ? 1 : 0;
      if (!word.colon || sentence < 2) continue;
      const auto [it, fresh] = head_rows_.try_emplace(Mix(hash, i), static_cast<uint32_t>(heads_known_.size()));
      if (fresh) heads_known_.push_back({.at = i + 1});
      heads_.push_back(it->second);
    }
  }

  /// Shapes that agree up to a colon and in nothing behind it are one statement with a free text.
  void JoinTails(uint32_t head) {
    Head& known = heads_known_[head];
    std::vector<uint32_t> open;
    std::vector<uint32_t> first;
    std::vector<size_t> lengths;
    for (const uint32_t id : known.shapes) {
      const Shape& shape = shapes_[id - 1];
      if (shape.joined != 0 || shape.free_at != 0) continue;
      open.push_back(id);
      first.push_back(table_of_words_[shape.words[known.at]].skeleton);
      lengths.push_back(shape.words.size());
    }
    if (open.size() < kFreeTails) return;
    const auto distinct = [](auto& list) {
      std::sort(list.begin(), list.end());
      return static_cast<size_t>(std::unique(list.begin(), list.end()) - list.begin());
    };
    if (distinct(lengths) < 2 && open.size() <= kFreeTails) return;
    if (distinct(first) < std::min(kManyTails, (open.size() + 1) / 2)) return;
    Shape& into = shapes_[open[0] - 1];
    into.free_at = static_cast<uint32_t>(known.at);
    into.words.resize(known.at);
    for (size_t i = 1; i < open.size(); ++i) {
      Shape& from = shapes_[open[i] - 1];
      from.joined = open[0];
      for (size_t k = 0; k < known.at; ++k) into.words[k] = table_of_words_.Join(into.words[k], from.words[k]);
    }
    known.free = open[0];
  }

  /// Final ids, in the order of first occurrence.
  void Number() {
    std::vector<uint32_t> number(shapes_.size() + 1, 0);
    for (size_t row = 0; row < store_.logs.size(); ++row) {
      trace::LogRecord& record = store_.logs[row];
      if (record.template_id == 0) continue;
      uint32_t shape = record.template_id;
      while (shapes_[shape - 1].joined != 0) shape = shapes_[shape - 1].joined;
      uint32_t& id = number[shape];
      if (id == 0) {
        id = static_cast<uint32_t>(table_.templates.size() + 1);
        final_.push_back(Plan(shapes_[shape - 1]));
        Template created;
        created.id = id;
        created.source = record.source;
        created.first = trace::LogRow(static_cast<uint32_t>(row));
        created.text = TextOf(shapes_[shape - 1]);
        table_.templates.push_back(std::move(created));
      }
      record.template_id = id;
      Template& known = table_.templates[id - 1];
      ++known.count;
      known.level = std::max(known.level, record.level);
    }
  }

  std::string TextOf(const Shape& shape) const {
    std::string text;
    for (const uint32_t word : shape.words) {
      if (!text.empty()) text += ' ';
      text += table_of_words_[word].text;
    }
    if (shape.free_at != 0) text += " <*>";
    return text;
  }

  enum class Part : uint8_t { kConstant, kHoles, kAny };
  struct Reading {
    std::vector<Part> parts;
    bool tail = false;
    bool whole_words = false;  ///< some word or the tail varies as a whole
    size_t expected = 0;       ///< parameters of the record before
  };

  Reading Plan(const Shape& shape) const {
    Reading reading;
    reading.tail = shape.free_at != 0;
    for (const uint32_t id : shape.words) {
      const Word& word = table_of_words_[id];
      // "stream=<*>" has a value of no form of its own: it is read as a whole.
      const bool whole = id == WordTable::kAny || word.text.find("=<*>") != std::string::npos;
      reading.parts.push_back(whole ? Part::kAny : word.holes ? Part::kHoles : Part::kConstant);
    }
    reading.whole_words =
        reading.tail || std::find(reading.parts.begin(), reading.parts.end(), Part::kAny) != reading.parts.end();
    while (!reading.tail && !reading.parts.empty() && reading.parts.back() == Part::kConstant) reading.parts.pop_back();
    return reading;
  }

  void Extract(size_t row) {
    trace::LogRecord& record = store_.logs[row];
    record.parameters.clear();
    if (record.template_id == 0) return;
    Reading& reading = final_[record.template_id - 1];
    record.parameters.reserve(reading.expected);
    if (reading.whole_words) {
      ExtractWords(record, reading);
    } else {
      const std::string_view message = record.message;
      for (size_t i = row == 0 ? 0 : seen_ends_[row - 1]; i < seen_ends_[row]; ++i) {
        const SeenHole& hole = seen_[i];
        if (hole.word < reading.parts.size() && reading.parts[hole.word] == Part::kHoles)
          record.parameters.push_back({hole.kind, std::string(message.substr(hole.offset, hole.length))});
      }
    }
    reading.expected = record.parameters.size();
  }

  /// Words that vary as a whole have no form: the message is walked again.
  void ExtractWords(trace::LogRecord& record, const Reading& reading) {
    WordWalker walker(Said(record));
    const auto add = [&](trace::LogParameter::Kind kind, std::string_view text) {
      if (record.parameters.size() < kMaxParameters)
        record.parameters.push_back({kind, std::string(text.substr(0, kMaxParameterBytes))});
    };
    std::string_view word;
    bool plain = false;
    for (const Part part : reading.parts) {
      if (!walker.Next(word, plain)) return;
      if (part == Part::kAny) {
        add(trace::LogParameter::Kind::kText, word);
      } else if (part == Part::kHoles) {
        holes_.clear();
        MaskWordInto(word, masked_, &holes_);
        for (const Hole& hole : holes_) add(hole.kind, hole.text);
      }
    }
    if (!reading.tail || !walker.Next(word, plain)) return;
    const std::string_view line = std::string_view(record.message).substr(0, record.message.find('\n'));
    add(trace::LogParameter::Kind::kText, line.substr(static_cast<size_t>(word.data() - line.data())));
  }

  /// A hole found when the message was first looked at.
  struct SeenHole {
    uint32_t offset = 0;
    uint16_t length = 0;
    uint8_t word = 0;
    trace::LogParameter::Kind kind = trace::LogParameter::Kind::kText;
  };

  trace::Store& store_;
  const MineOptions& options_;
  WordTable table_of_words_;
  KnownForms known_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> buckets_;
  std::vector<Shape> shapes_;
  std::vector<uint32_t> heads_;  // of the current message, shortest first
  std::vector<Head> heads_known_;
  std::unordered_map<uint64_t, uint32_t> head_rows_;
  std::vector<Reading> final_;  // by final id
  TemplateTable table_;
  WordIds words_;
  std::string masked_;
  std::vector<Hole> holes_;
  std::vector<SeenHole> seen_;     // of all records, in their order
  std::vector<size_t> seen_ends_;  // by record
};

}  // namespace

TemplateTable MineTemplates(trace::Store& store, const MineOptions& options) {
  return Miner(store, options).Run();
}

}  // namespace teller::logs
