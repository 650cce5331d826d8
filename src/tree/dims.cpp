#include "tree/dims.hpp"

#include <cctype>
#include <cstddef>

namespace teller::tree {

namespace {

/// Walks the innermost lists; `stop_after_first` ends at the first non-empty one.
double Walk(std::string_view dims, bool stop_after_first) {
  double total = 0;
  double product = 1;
  double number = 0;
  bool in_number = false;
  bool list_has_number = false;
  for (const char c : dims) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number = number * 10 + (c - '0');
      in_number = true;
      continue;
    }
    if (in_number) {
      product *= number;
      list_has_number = true;
      number = 0;
      in_number = false;
    }
    if (c == '[') {
      product = 1;
      list_has_number = false;
    } else if (c == ']') {
      if (list_has_number) {
        total += product;
        if (stop_after_first) return total;
      }
      product = 1;
      list_has_number = false;
    }
  }
  return total;
}

}  // namespace

double ElementsOfDims(std::string_view dims) { return Walk(dims, false); }

double ElementsOfFirstTensor(std::string_view dims) { return Walk(dims, true); }

}  // namespace teller::tree
