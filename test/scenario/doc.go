// Package scenario uses pods as their owners do, through the real programs: many at once, with networking, host ports, volumes, config
// maps and secrets. Everything must arrive in the container, follow its source where it should, be hidden where it must, and be removed
// completely afterwards.
//
// The tests need root. They run in a network namespace of their own and do not affect the host's network.
package scenario
