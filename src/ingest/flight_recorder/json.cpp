#include <simdjson.h>

#include "ingest/flight_recorder/notation.hpp"

namespace teller::ingest::flight_recorder {

namespace {

namespace sj = simdjson::dom;

/// simdjson bounds the nesting (1024), so the recursion is bounded too.
ValueId Convert(sj::element element, ValueTree& tree) {
  if (tree.full()) return 0;
  switch (element.type()) {
    case sj::element_type::ARRAY: {
      const ValueId list = tree.AddList();
      for (const auto item : sj::array(element)) tree.Append(list, Convert(item, tree));
      return list;
    }
    case sj::element_type::OBJECT: {
      const ValueId map = tree.AddMap();
      for (const auto field : sj::object(element)) {
        tree.Append(map, tree.AddOwnText(std::string(field.key)));
        tree.Append(map, Convert(field.value, tree));
      }
      return map;
    }
    case sj::element_type::INT64: return tree.AddInteger(int64_t(element));
    case sj::element_type::UINT64: return tree.AddReal(static_cast<double>(uint64_t(element)));  // beyond int64
    case sj::element_type::DOUBLE: return tree.AddReal(double(element));
    case sj::element_type::STRING: return tree.AddOwnText(std::string(std::string_view(element)));
    case sj::element_type::BOOL: return tree.AddBool(bool(element));
    case sj::element_type::NULL_VALUE: break;
  }
  return tree.AddNull();
}

}  // namespace

base::Result<ValueTree> ParseJson(std::string_view text) {
  sj::parser parser;
  sj::element document;
  if (const auto error = parser.parse(text.data(), text.size()).get(document); error != simdjson::SUCCESS) {
    return base::Error{base::Code::kBadFormat, std::string("no JSON document: ") + simdjson::error_message(error)};
  }
  ValueTree tree;
  tree.root = Convert(document, tree);
  if (tree.full()) return base::Error{base::Code::kLimit, "the dump holds more values than a recorder can keep"};
  return tree;
}

}  // namespace teller::ingest::flight_recorder
