package main

import (
	"slices"
)

// defences returns the table.
func defences() []defence {
	return slices.Concat(imageDefences(), unpackDefences(), nameDefences(), fileDefences(), heldDefences(), podDefences(), mountDefences(), textDefences())
}

// unconfirmed are tests on real containers that have not been seen to fail as the table expects.
var unconfirmed = []string{
	"TestHostPathOverRunDirectory", "TestLeasesOnPodFiles", "TestLogFileRead", "TestLogFileReplaced", "TestProtectedHostPath", "TestUglyText",
}

// isConfirmed reports whether the test was seen to fail as expected.
func (d defence) isConfirmed() bool { return !d.e2e || !slices.Contains(unconfirmed, d.test) }
