package main

import (
	"slices"
)

// defences returns the table.
func defences() []defence {
	return slices.Concat(imageDefences(), unpackDefences(), nameDefences(), fileDefences(), heldDefences(), podDefences(), mountDefences(),
		textDefences(), copyDefences(), clientDefences())
}
