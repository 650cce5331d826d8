#include "ingest/common/tar.hpp"

#include <gtest/gtest.h>

#include "base/rng.hpp"

namespace teller::ingest {
namespace {

std::string Octal(uint64_t value, size_t width) {
  std::string text(width, '0');
  for (size_t i = width; i-- > 0; value /= 8) text[i] = static_cast<char>('0' + value % 8);
  return text;
}

std::string Header(const std::string& name, uint64_t size, char type = '0', const std::string& prefix = "") {
  std::string header(kTarBlock, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000644");
  put(124, size >= (uint64_t{1} << 33) ? std::string("\x80\0\0\0", 4) : Octal(size, 11));
  if (size >= (uint64_t{1} << 33)) {
    for (size_t i = 0; i < 8; ++i) header[135 - i] = static_cast<char>(size >> (8 * i) & 0xFF);
  }
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  put(345, prefix);
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, Octal(sum, 6) + std::string("\0 ", 2));
  return header;
}

std::string Padded(std::string text) {
  text.resize((text.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return text;
}
std::string File(const std::string& name, const std::string& content, char type = '0', const std::string& prefix = "") {
  return Header(name, content.size(), type, prefix) + Padded(content);
}
std::string PaxRecord(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}
const std::string kEnd(2 * kTarBlock, '\0');

TarIndex Index(const std::string& archive) {
  auto source = base::OpenMemory(archive);
  auto index = ReadTarIndex(*source);
  EXPECT_TRUE(index.has_value());
  return *index;
}

TEST(Tar, JoinedArchivesAreReadToTheLast) {
  const std::string one = File("a.json", "1") + File("b.json", "2") + kEnd;
  const std::string two = File("b.json", "33") + File("c.json", "4") + kEnd + kEnd;
  const TarIndex index = Index(one + two + File("d.json", "5"));
  EXPECT_EQ(index.damage, "");
  EXPECT_EQ(index.behind, 0u);
  EXPECT_EQ(index.overwritten, 1u);
  ASSERT_EQ(index.members.size(), 4u);
  EXPECT_EQ(index.members[1].name, "b.json");
  EXPECT_EQ(index.members[1].size, 2u);
  EXPECT_EQ(index.members[3].name, "d.json");
}

TEST(Tar, DataBehindTheEndThatIsNoArchiveIsSaid) {
  const std::string archive = File("a.json", "1") + kEnd;
  for (const std::string& behind :
       {std::string("x"), std::string(700, 'x'), std::string(600, '\0') + std::string(5000, 'y')}) {
    const TarIndex index = Index(archive + behind);
    EXPECT_EQ(index.members.size(), 1u);
    EXPECT_EQ(index.behind, archive.size() + (behind[0] == '\0' ? kTarBlock : 0)) << behind.size();
    EXPECT_EQ(index.damage, "");
  }
  EXPECT_EQ(Index(archive + std::string(100, '\0')).behind, 0u);
}

TEST(Tar, ListsFilesWithTheirPlaces) {
  const std::string archive =
      File("run/", "", '5') + File("./run/a.json", "12345") + File("/run/b.log", std::string(700, 'x')) + kEnd;
  EXPECT_TRUE(LooksLikeTar(archive));
  const auto index = Index(archive);
  ASSERT_EQ(index.members.size(), 2u);
  EXPECT_EQ(index.members[0].name, "run/a.json");
  EXPECT_EQ(archive.substr(index.members[0].offset, index.members[0].size), "12345");
  EXPECT_EQ(index.members[1].name, "run/b.log");
  EXPECT_EQ(archive.substr(index.members[1].offset, index.members[1].size), std::string(700, 'x'));
  EXPECT_EQ(index.damage, "");
}

TEST(Tar, ReadsLongNamesOfAllForms) {
  const std::string name = "run/" + std::string(150, 'n') + "/rank0.json";
  const auto posix = Index(File("rank0.json", "1", '0', "run/" + std::string(100, 'p')) + kEnd);
  EXPECT_EQ(posix.members.at(0).name, "run/" + std::string(100, 'p') + "/rank0.json");
  const auto pax = Index(File("x", PaxRecord("mtime", "1") + PaxRecord("path", name), 'x') + File("short", "22") +
                         File("next", "3") + kEnd);
  EXPECT_EQ(pax.members.at(0).name, name);
  EXPECT_EQ(pax.members.at(1).name, "next") << "a header counts for one member";
  const auto gnu = Index(File("././@LongLink", name + std::string(1, '\0'), 'L') + File("short", "22") + kEnd);
  EXPECT_EQ(gnu.members.at(0).name, name);
}

TEST(Tar, LinksDevicesAndHiddenNamesAreCounted) {
  const auto index =
      Index(File("link", "", '2') + File("hard", "", '1') + File("null", "", '3') + File(".secret", "1") +
            File("a/._b", "1") + File("a/../c", "1") + File("twice", "old") + File("twice", "new!") + kEnd);
  EXPECT_EQ(index.links, 2u);
  EXPECT_EQ(index.special, 1u);
  EXPECT_EQ(index.hidden, 2u);
  EXPECT_EQ(index.overwritten, 1u);
  ASSERT_EQ(index.members.size(), 2u);
  EXPECT_EQ(index.members[0].name, "a/../c") << "a name is shown, never opened";
  EXPECT_EQ(index.members[1].size, 4u);
}

TEST(Tar, SizesThatTheArchiveDoesNotHold) {
  for (const uint64_t size : {uint64_t{1} << 33, (uint64_t{1} << 60) - 1, uint64_t{1} << 61, UINT64_MAX}) {
    const auto index = Index(File("good", "1") + Header("huge", size) + "few bytes");
    EXPECT_NE(index.damage, "") << size;
    EXPECT_EQ(index.members.at(0).name, "good");
  }
  const auto pax = Index(File("x", PaxRecord("size", "99999999999999999999"), 'x') + File("a", "1") + kEnd);
  EXPECT_EQ(pax.damage, "has a damaged extended header");
  EXPECT_EQ(Index(Header("x", 2u << 20, 'x') + std::string(3u << 20, 'y')).damage,
            "has an extended header of more than 1 MiB");
}

TEST(Tar, EveryCutIsSeenAndWhatStandsBeforeIsKept) {
  const std::string archive =
      File("a", "1") + File("x", PaxRecord("path", "named"), 'x') + File("b", std::string(600, '2'));
  for (size_t n = 1; n < archive.size(); ++n) {
    const auto index = Index(archive.substr(0, n));
    const bool between = n == 2 * kTarBlock || n == 4 * kTarBlock;
    EXPECT_EQ(index.damage.empty(), between) << n;
    if (n >= 2 * kTarBlock) {
      EXPECT_EQ(index.members.at(0).name, "a") << n;
    }
  }
}

TEST(Tar, DamagedBytesNeverListWhatIsNotThere) {
  base::Rng rng(17);
  const std::string archive =
      File("a", "1") + File("x", PaxRecord("path", "named"), 'x') + File("b", std::string(600, '2')) + kEnd;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string bad = archive;
    for (int i = 0; i < 3; ++i) bad[rng.Below(bad.size())] = static_cast<char>(rng.Next());
    for (const TarMember& member : Index(bad).members) EXPECT_LE(member.offset, bad.size());
  }
}

TEST(Tar, OtherFilesAreNoArchives) {
  EXPECT_FALSE(LooksLikeTar("{\"traceEvents\":[]}"));
  EXPECT_FALSE(LooksLikeTar(std::string(512, 'x')));
  std::string wrong_sum = File("a", "1");
  wrong_sum[0] = 'b';
  EXPECT_FALSE(LooksLikeTar(wrong_sum));
}

}  // namespace
}  // namespace teller::ingest
