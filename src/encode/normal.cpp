#include "encode/normal.hpp"

#include <algorithm>
#include <cmath>

#include "encode/name_text.hpp"

namespace teller::encode {

namespace {

constexpr double kScaleShare = 0.05;  // of the median
constexpr double kScaleFloor = 1000;  // ns
constexpr double kMadToSigma = 1.4826;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 31);
}

float Median(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<NodeNormals::Keys> NodeNormals::KeysOf(const Segment& segment, const Forest& forest) const {
  std::vector<Keys> keys(forest.size());
  const uint64_t kind =
      segment.step.valid() ? 1 + static_cast<uint64_t>(trees_.steps[segment.step.value()].kind) : uint64_t{0};
  std::vector<uint64_t> path;   // hash of the symbols from the root, by depth
  std::vector<uint32_t> above;  // symbol, by depth
  for (size_t i = 0; i < forest.size(); ++i) {
    const uint32_t depth = forest.depth[i];
    path.resize(depth + 1);
    above.resize(depth + 1);
    above[depth] = forest.symbol[i];
    path[depth] = Mix(depth == 0 ? kind : path[depth - 1], forest.symbol[i]);
    uint64_t exact = path[depth];
    if (forest.span[i].valid()) {
      if (const auto* args = store_.op_args.Find(forest.span[i].value())) {
        exact = Mix(exact, args->input_dims.valid() ? args->input_dims.value() + 1 : 0);
        if (args->label.valid()) exact = Mix(exact, HashOf(WithoutNumbers(store_.text(args->label))));
      }
      if (const auto* args = store_.gpu_args.Find(forest.span[i].value()); args != nullptr && args->bytes >= 0)
        exact = Mix(exact, static_cast<uint64_t>(args->bytes));
    }
    keys[i] = {exact | 1, Mix(depth == 0 ? 0 : 1 + uint64_t{above[depth - 1]}, forest.symbol[i]) & ~uint64_t{1}};
  }
  return keys;
}

void NodeNormals::Add(const Segment& segment, const Forest& forest) {
  const std::vector<Keys> keys = KeysOf(segment, forest);
  for (size_t i = 0; i < forest.size(); ++i) {
    if (!forest.span[i].valid()) continue;
    const auto self = static_cast<float>(forest.self[i]);
    samples_[keys[i].exact].push_back(self);
    samples_[keys[i].loose].push_back(self);
  }
}

void NodeNormals::Finish() {
  for (auto& [key, values] : samples_) {
    if (values.size() < kFewest) continue;
    const float median = Median(values);
    for (float& value : values) value = std::abs(value - median);
    const double mad = Median(values);
    const double scale = std::max({kMadToSigma * mad, kScaleShare * static_cast<double>(median), kScaleFloor});
    normals_[key] = {median, static_cast<float>(scale)};
  }
  samples_.clear();
}

std::vector<Residual> NodeNormals::Judge(const Segment& segment, const Forest& forest) const {
  const std::vector<Keys> keys = KeysOf(segment, forest);
  std::vector<Residual> residuals(forest.size());
  for (size_t i = 0; i < forest.size(); ++i) {
    if (!forest.span[i].valid()) continue;
    auto found = normals_.find(keys[i].exact);
    if (found == normals_.end()) found = normals_.find(keys[i].loose);
    if (found == normals_.end()) continue;
    const double excess = static_cast<double>(forest.self[i]) - static_cast<double>(found->second.median);
    residuals[i] = {static_cast<float>(excess / static_cast<double>(found->second.scale)),
                    static_cast<trace::Nanos>(excess)};
  }
  return residuals;
}

}  // namespace teller::encode
