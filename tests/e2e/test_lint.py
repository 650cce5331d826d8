"""The lint scripts pass on this tree, and see what they are there to see."""
import unittest

import check_floors
import check_layout
from harness import ROOT, Case


class Lint(Case):
    def test_no_module_includes_upward_or_sideways(self):
        self.assertEqual(check_floors.check(ROOT), [])

    def test_layout_rules_hold(self):
        self.assertEqual(check_layout.check(ROOT), [])

    def test_floors_sees_upward_and_sideways_includes(self):
        self.write("src/base/a.cpp", '#include "trace/store.hpp"\n')
        self.write("src/tree/a.cpp", '#include "logs/templates.hpp"\n#include "trace/store.hpp"\n')
        self.write("src/engine/a.cpp", '#include "locate/locate.hpp"\n')
        self.write("src/attic/a.cpp", "")
        self.assertEqual([line.split(":")[0] for line in check_floors.check(self.folder)],
                         ["src/attic/a.cpp", "src/base/a.cpp", "src/tree/a.cpp"])

    def test_layout_sees_what_is_wrong(self):
        self.write("src/base/a.hpp", "int x;\n")
        self.write("src/tree/b.cpp", "// TO" + "DO later\nvoid f() { std::printf(\"x\"); }\n\tint y; \n")
        self.assertEqual(len(check_layout.check(self.folder)), 4)


if __name__ == "__main__":
    unittest.main()
