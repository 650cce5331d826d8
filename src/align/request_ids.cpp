#include "align/request_ids.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace teller::align {

namespace {

constexpr size_t kTailDigits = 8;    // vLLM's random tail
constexpr size_t kShortestForm = 4;  // a shorter rest of an id tells nothing
constexpr std::array<std::string_view, 4> kHeads = {"cmpl-", "chatcmpl-", "resp_", "embd-"};

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// `id` without "-94880aa5".
std::string_view WithoutTail(std::string_view id) {
  const size_t dash = id.rfind('-');
  if (dash == std::string_view::npos || id.size() - dash - 1 != kTailDigits) return id;
  return IsHex(id.substr(dash + 1)) ? id.substr(0, dash) : id;
}

/// `id` without "-0".
std::string_view WithoutIndex(std::string_view id) {
  const size_t dash = id.rfind('-');
  if (dash == std::string_view::npos || id.size() - dash - 1 > 3) return id;
  return IsNumber(id.substr(dash + 1)) ? id.substr(0, dash) : id;
}

std::string_view WithoutHead(std::string_view id) {
  for (const std::string_view head : kHeads) {
    if (id.substr(0, head.size()) == head) return id.substr(head.size());
  }
  return id;
}

/// `id` and its shorter forms, longest first.
std::vector<std::string_view> Forms(std::string_view id) {
  std::vector<std::string_view> forms{id};
  const auto add = [&forms](std::string_view form) {
    if (form.size() >= kShortestForm && std::find(forms.begin(), forms.end(), form) == forms.end())
      forms.push_back(form);
  };
  const std::string_view tailless = WithoutTail(id);
  add(tailless);
  add(WithoutHead(id));
  add(WithoutHead(tailless));
  if (WithoutHead(id) != id) {  // a bare "0025-006" ends in its own number, not in a sample's
    add(WithoutIndex(tailless));
    add(WithoutHead(WithoutIndex(tailless)));
  }
  return forms;
}

std::string Key(std::string_view scope, std::string_view id) {
  std::string key(scope);
  key += '\n';
  key += id;
  return key;
}

}  // namespace

bool RequestIds::IsLocal(std::string_view id) {
  return id.substr(0, 5) == "task " || (IsNumber(id) && id.size() < kTailDigits);
}

void RequestIds::Add(std::string_view scope, std::string_view id, uint32_t request) {
  exact_.emplace(Key(scope, id), request);
  for (const std::string_view form : Forms(id)) {
    const auto [it, is_new] = forms_.emplace(Key(scope, form), Form{request, form == id});
    if (!is_new && it->second.request != request) it->second.request = kNone;
    it->second.whole |= form == id;
  }
}

uint32_t RequestIds::Find(std::string_view scope, std::string_view id) const {
  if (const auto found = exact_.find(Key(scope, id)); found != exact_.end()) return found->second;
  for (const std::string_view form : Forms(id)) {
    const auto found = forms_.find(Key(scope, form));
    // "bench-1" and "bench-2" share a form that neither of them is.
    if (found != forms_.end() && found->second.request != kNone && (form == id || found->second.whole))
      return found->second.request;
  }
  return kNone;
}

}  // namespace teller::align
