#include "logs/template_miner.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "logs/mask.hpp"

namespace teller::logs {

namespace {

constexpr size_t kMaxWords = 64;  // longer messages are dumps; their head tells their shape
constexpr size_t kMaxParameters = 48;
constexpr size_t kMaxParameterBytes = 128;
constexpr size_t kMaxBucket = 256;  // candidates compared per message
constexpr std::string_view kAny = "<*>";

struct Words {
  std::vector<std::string> masked;
  std::vector<std::string_view> raw;
};

Words Split(std::string_view message) {
  Words words;
  message = message.substr(0, message.find('\n'));
  std::vector<Hole> holes;
  while (!message.empty() && words.raw.size() < kMaxWords) {
    const size_t begin = message.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    message.remove_prefix(begin);
    const std::string_view word = message.substr(0, message.find_first_of(" \t"));
    message.remove_prefix(word.size());
    words.raw.push_back(word);
    holes.clear();
    words.masked.push_back(MaskWord(word, holes));
  }
  return words;
}

struct Shape {
  std::vector<std::string> words;
  uint32_t id = 0;
};

/// Messages compared with each other: same grammar, same number of words, same first word unless that varies.
using Key = std::tuple<uint8_t, size_t, std::string>;

Key KeyOf(trace::LogSource source, const std::vector<std::string>& words) {
  const std::string head = words.empty() || words[0].find('<') != std::string::npos ? std::string(kAny) : words[0];
  return {static_cast<uint8_t>(source), words.size(), head};
}

/// Equal words; a word that already varies counts half, so that a closer shape wins over a vaguer one.
double Similarity(const std::vector<std::string>& shape, const std::vector<std::string>& words) {
  if (shape.empty()) return 1;
  double same = 0;
  for (size_t i = 0; i < shape.size(); ++i) same += shape[i] == words[i] ? 1 : shape[i] == kAny ? 0.5 : 0;
  return same / static_cast<double>(shape.size());
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

class Miner {
 public:
  Miner(trace::Store& store, const MineOptions& options) : store_(store), options_(options) {}

  TemplateTable Run() {
    for (size_t row = 0; row < store_.logs.size(); ++row) Assign(row);
    // Words may have turned out to vary later on: parameters are read with the final shapes.
    for (auto& record : store_.logs) Extract(record);
    for (auto& row : table_.templates) row.text = Join(shapes_[row.id - 1].words);
    return std::move(table_);
  }

 private:
  void Assign(size_t row) {
    trace::LogRecord& record = store_.logs[row];
    const Words words = Split(record.message);
    auto& bucket = buckets_[KeyOf(record.source, words.masked)];
    uint32_t best = 0;
    double score = 0;
    for (const uint32_t id : bucket) {
      const double similarity = Similarity(shapes_[id - 1].words, words.masked);
      if (similarity > score) {
        score = similarity;
        best = id;
      }
    }
    if (best == 0 || score < options_.similarity) best = Grow(row, words, bucket, best);
    record.template_id = best;
    if (best == 0) {
      ++table_.beyond_limit;
      return;
    }
    Shape& shape = shapes_[best - 1];
    for (size_t i = 0; i < shape.words.size(); ++i) {
      if (shape.words[i] != words.masked[i]) shape.words[i] = kAny;
    }
    Template& known = table_.templates[best - 1];
    ++known.count;
    known.level = std::max(known.level, record.level);
  }

  /// A new shape, or the nearest one when there is no room for more of this kind.
  uint32_t Grow(size_t row, const Words& words, std::vector<uint32_t>& bucket, uint32_t nearest) {
    if (bucket.size() >= kMaxBucket) return nearest;
    if (shapes_.size() >= options_.max_templates) return 0;
    const auto id = static_cast<uint32_t>(shapes_.size() + 1);
    shapes_.push_back({words.masked, id});
    bucket.push_back(id);
    Template created;
    created.id = id;
    created.source = store_.logs[row].source;
    created.first = trace::LogRow(static_cast<uint32_t>(row));
    table_.templates.push_back(std::move(created));
    return id;
  }

  void Extract(trace::LogRecord& record) const {
    record.parameters.clear();
    if (record.template_id == 0) return;
    const Shape& shape = shapes_[record.template_id - 1];
    const Words words = Split(record.message);
    const auto add = [&](trace::LogParameter::Kind kind, std::string_view text) {
      if (record.parameters.size() < kMaxParameters)
        record.parameters.push_back({kind, std::string(text.substr(0, kMaxParameterBytes))});
    };
    std::vector<Hole> holes;
    for (size_t i = 0; i < shape.words.size() && i < words.raw.size(); ++i) {
      if (shape.words[i] == kAny) {
        add(trace::LogParameter::Kind::kText, words.raw[i]);
        continue;
      }
      holes.clear();
      MaskWord(words.raw[i], holes);
      for (const Hole& hole : holes) add(hole.kind, hole.text);
    }
  }

  trace::Store& store_;
  const MineOptions& options_;
  std::map<Key, std::vector<uint32_t>> buckets_;
  std::vector<Shape> shapes_;
  TemplateTable table_;
};

}  // namespace

TemplateTable MineTemplates(trace::Store& store, const MineOptions& options) {
  return Miner(store, options).Run();
}

}  // namespace teller::logs
