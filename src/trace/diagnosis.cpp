#include "trace/diagnosis.hpp"

namespace teller::trace {

std::string_view Name(Evidence::Kind kind) {
  switch (kind) {
    case Evidence::Kind::kSpan: return "span";
    case Evidence::Kind::kLog: return "log";
    case Evidence::Kind::kCollective: return "collective";
    case Evidence::Kind::kStatistic: return "statistic";
  }
  return "span";
}

std::string_view Name(VerdictStatus status) {
  switch (status) {
    case VerdictStatus::kNormal: return "normal";
    case VerdictStatus::kAbnormal: return "abnormal";
    case VerdictStatus::kCannotTell: return "cannot_tell";
  }
  return "cannot_tell";
}

}  // namespace teller::trace
