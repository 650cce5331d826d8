#include "ingest/flight_recorder/value.hpp"

#include <fmt/format.h>

#include <charconv>

namespace teller::ingest::flight_recorder {

namespace {

constexpr int kMaxDepth = 32;  // sizes nest twice

void Quote(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

bool Write(Value value, size_t end, int depth, std::string& out) {
  if (out.size() > end || depth > kMaxDepth) return false;
  switch (value.kind()) {
    case ValueKind::kNull: out += "null"; break;
    case ValueKind::kBool: out += value.Bool().value_or(false) ? "true" : "false"; break;
    case ValueKind::kInteger: out += std::to_string(value.Integer().value_or(0)); break;
    case ValueKind::kReal: out += fmt::format("{}", value.Real().value_or(0)); break;
    case ValueKind::kText: {
      const std::string_view text = value.TextView().value_or("");
      if (text.size() > end) return false;
      Quote(text, out);
      break;
    }
    case ValueKind::kList:
    case ValueKind::kMap: {
      const bool map = value.kind() == ValueKind::kMap;
      out += map ? '{' : '[';
      for (size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ',';
        if (map) {
          if (!Write(value.KeyAt(i), end, depth + 1, out)) return false;
          out += ':';
        }
        if (!Write(value.at(i), end, depth + 1, out)) return false;
      }
      out += map ? '}' : ']';
      break;
    }
  }
  return out.size() <= end;
}

}  // namespace

void ValueTree::Append(ValueId container, ValueId item) {
  Node& node = nodes_[container];
  if (node.integer < 0) {
    node.integer = static_cast<int64_t>(children_.size());
    children_.emplace_back();
  }
  children_[static_cast<size_t>(node.integer)].push_back(item);
}

const std::vector<ValueId>* Value::Children() const {
  if (kind() != ValueKind::kList && kind() != ValueKind::kMap) return nullptr;
  const int64_t index = tree_->nodes_[id_].integer;
  return index < 0 ? nullptr : &tree_->children_[static_cast<size_t>(index)];
}

std::optional<int64_t> Value::Integer() const {
  if (kind() == ValueKind::kInteger) return tree_->nodes_[id_].integer;
  const auto text = TextView();
  if (!text || text->empty() || text->size() > 20) return std::nullopt;
  int64_t value = 0;
  const auto [end, fault] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (fault != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<bool> Value::Bool() const {
  return kind() == ValueKind::kBool ? std::optional(tree_->nodes_[id_].integer != 0) : std::nullopt;
}

std::optional<double> Value::Real() const {
  return kind() == ValueKind::kReal ? std::optional(tree_->nodes_[id_].real) : std::nullopt;
}

std::optional<std::string_view> Value::TextView() const {
  return kind() == ValueKind::kText ? std::optional(tree_->nodes_[id_].text) : std::nullopt;
}

size_t Value::size() const {
  const auto* children = Children();
  if (children == nullptr) return 0;
  return kind() == ValueKind::kMap ? children->size() / 2 : children->size();
}

Value Value::at(size_t index) const {
  if (index >= size()) return {};
  return {*tree_, (*Children())[kind() == ValueKind::kMap ? 2 * index + 1 : index]};
}

Value Value::KeyAt(size_t index) const {
  if (kind() != ValueKind::kMap || index >= size()) return {};
  return {*tree_, (*Children())[2 * index]};
}

Value Value::Find(std::string_view key) const {
  if (kind() != ValueKind::kMap) return {};
  for (size_t i = size(); i-- > 0;) {
    const Value own = KeyAt(i);
    const auto text = own.TextView();
    const bool same = text ? *text == key : own.kind() == ValueKind::kInteger && std::to_string(*own.Integer()) == key;
    if (same) return at(i);
  }
  return {};
}

bool Minify(Value value, size_t limit, std::string& out) {
  return Write(value, out.size() + limit, 0, out);
}

std::string ToText(Value value, size_t limit) {
  std::string out;
  if (const auto text = value.TextView()) return std::string(text->substr(0, limit));
  (void)Minify(value, limit, out);
  if (out.size() > limit) out.resize(limit);
  return out;
}

}  // namespace teller::ingest::flight_recorder
