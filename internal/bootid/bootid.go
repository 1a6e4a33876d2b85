// Package bootid reads the kernel's ID of the current boot. It is the only reader of that file in the program.
package bootid

import (
	"fmt"
	"os"
	"strings"
)

// path is documented in random(4).
const path = "/proc/sys/kernel/random/boot_id"

// Read returns the boot ID of the host: a random UUID that the kernel creates at each boot.
func Read() (string, error) {
	return read(path)
}

func read(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read boot ID: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return "", fmt.Errorf("read boot ID: %s is empty", path)
	}
	return id, nil
}
