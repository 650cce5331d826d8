#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace teller::align {

/// Finds a request by any form in which a source may write its id. Engines add heads ("cmpl-", "chatcmpl-"), an index
/// of the sample ("-0") and a random tail of eight hex digits to the id that the client chose; routers and clients
/// write it bare. A form that two requests share finds neither.
class RequestIds {
 public:
  /// Makes the forms of `id` lead to `request`. `scope` keeps ids apart that only one process counts ("task 12" of a
  /// llama.cpp server); it is empty for ids that are unique in the run.
  void Add(std::string_view scope, std::string_view id, uint32_t request);

  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  /// The request that `id` names, or kNone.
  uint32_t Find(std::string_view scope, std::string_view id) const;

  /// True when only the process that wrote it can tell what `id` names.
  static bool IsLocal(std::string_view id);

 private:
  std::unordered_map<std::string, uint32_t> exact_;
  struct Form {
    uint32_t request = kNone;  ///< kNone: shared by several
    bool whole = false;        ///< some id of the request is written just so
  };
  std::unordered_map<std::string, Form> forms_;
};

}  // namespace teller::align
