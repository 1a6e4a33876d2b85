package statefile

import "encoding/json"

// head returns an object with the members that every file begins with. Tests build a later version of Podstead by replacing this file, see
// test/faults/upgrade_test.go.
func (f Format) head() ([]byte, error) {
	h := head{Version: f.Version}
	if f.MinReader < f.Version {
		h.MinReader = f.MinReader
	}
	return json.Marshal(h)
}
