// Package proc reads what the kernel shows of the boot, of processes and of their user namespace. It changes nothing.
package proc

import (
	"fmt"
	"os"
	"strings"
)

// bootIDPath is documented in random(4).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// BootID returns the boot ID of the host: a random UUID that the kernel creates at each boot.
func BootID() (string, error) {
	return readBootID(bootIDPath)
}

func readBootID(path string) (string, error) {
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
