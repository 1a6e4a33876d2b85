package daemon

// SetInMemory sets whether the record is in memory.
func (h *rebootHost) SetInMemory(volatile bool) {
	h.inMemory = func(string) (bool, error) { return volatile, nil }
}

// InMemory reports whether the files of a directory are lost at a reboot.
var InMemory = inMemory
