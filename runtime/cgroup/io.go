package cgroup

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/order"
)

// DeviceIO is the traffic of a block device since the cgroup was created.
type DeviceIO struct {
	Major, Minor                    uint64
	ReadBytes, WriteBytes           uint64
	ReadOperations, WriteOperations uint64
}

// devices are the traffic by device number.
type devices map[string]*DeviceIO

// add returns the traffic of the device MAJOR:MINOR; nil: the text is not a device number.
func (d devices) add(number string) *DeviceIO {
	if known := d[number]; known != nil {
		return known
	}
	major, minor, ok := strings.Cut(number, ":")
	a, err := strconv.ParseUint(major, 10, 32)
	b, minorErr := strconv.ParseUint(minor, 10, 32)
	if !ok || err != nil || minorErr != nil {
		return nil
	}
	d[number] = &DeviceIO{Major: a, Minor: b}
	return d[number]
}

func (d devices) list() []DeviceIO {
	var list []DeviceIO
	for _, device := range order.Sorted(maps.Values(d), func(a, b *DeviceIO) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor))
	}) {
		list = append(list, *device)
	}
	return list
}

// ioV2 reads io.stat: "8:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0".
func ioV2(dir string) []DeviceIO {
	text, err := os.ReadFile(filepath.Join(dir, "io.stat"))
	if err != nil {
		return nil
	}
	found := devices{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		device := found.add(fields[0])
		if device == nil {
			continue
		}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				continue
			}
			switch key {
			case "rbytes":
				device.ReadBytes = n
			case "wbytes":
				device.WriteBytes = n
			case "rios":
				device.ReadOperations = n
			case "wios":
				device.WriteOperations = n
			}
		}
	}
	return found.list()
}

// ioV1 reads the files of the controller blkio, which count synchronous and direct I/O: "8:0 Read 4096".
func ioV1(dir string) []DeviceIO {
	if dir == "" {
		return nil
	}
	found := devices{}
	each := func(file string, set func(d *DeviceIO, operation string, n uint64)) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue // the last line is the total
			}
			n, err := strconv.ParseUint(fields[2], 10, 64)
			if device := found.add(fields[0]); device != nil && err == nil {
				set(device, fields[1], n)
			}
		}
	}
	each("blkio.throttle.io_service_bytes_recursive", func(d *DeviceIO, operation string, n uint64) {
		switch operation {
		case "Read":
			d.ReadBytes = n
		case "Write":
			d.WriteBytes = n
		}
	})
	each("blkio.throttle.io_serviced_recursive", func(d *DeviceIO, operation string, n uint64) {
		switch operation {
		case "Read":
			d.ReadOperations = n
		case "Write":
			d.WriteOperations = n
		}
	})
	return found.list()
}
