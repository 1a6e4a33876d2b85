package main

import "slices"

// defences returns the table.
func defences() []defence {
	return slices.Concat(imageDefences(), nameDefences(), fileDefences(), heldDefences(), podDefences(), textDefences())
}
