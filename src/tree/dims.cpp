#include "tree/dims.hpp"

#include <algorithm>
#include <cctype>

namespace teller::tree {

namespace {

constexpr double kMostElements = 1e15;  // no tensor is larger; hostile dims must not reach infinity

}  // namespace

double ElementsOfFirstTensor(std::string_view dims) {
  double product = 1;
  double number = 0;
  bool in_number = false;
  bool list_has_number = false;
  for (const char c : dims) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      number = std::min(number * 10 + (c - '0'), kMostElements);
      in_number = true;
      continue;
    }
    if (in_number) {
      product = std::min(product * number, kMostElements);
      list_has_number = true;
      number = 0;
      in_number = false;
    }
    if (c == '[') {
      product = 1;
      list_has_number = false;
    } else if (c == ']') {
      if (list_has_number) {
        return product;
      }
      product = 1;
      list_has_number = false;
    }
  }
  return 0;
}

}  // namespace teller::tree
