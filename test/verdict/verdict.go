// Package verdict compares seccomp filters by what they decide for every system call. It is for tests only.
package verdict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The offsets in struct seccomp_data.
const (
	offsetNumber, offsetArch, offsetArgs, dataBytes = 0, 4, 16, 64
)

const (
	// numbers is more than any architecture has. The largest number of Linux 6.18 is 470 on these.
	numbers = 512
	// x32 is the bit of numbers of the x32 ABI.
	x32 = 0x40000000
)

// Architectures are the AUDIT_ARCH constants for which filters are compared. Those of other architectures get the same verdict as Unknown.
var Architectures = map[string]uint32{
	"x86_64": unix.AUDIT_ARCH_X86_64, "i386": unix.AUDIT_ARCH_I386, "aarch64": unix.AUDIT_ARCH_AARCH64, "arm": unix.AUDIT_ARCH_ARM,
	"Unknown": 0,
}

// Filter is a filter that can be evaluated.
type Filter struct {
	vm        *bpf.VM
	arguments []int    // the indexes of arguments that it reads
	constants []uint32 // what it compares and masks them with
}

// New reads a filter in the form of the kernel (struct sock_filter).
func New(program []byte) (*Filter, error) {
	var code []bpf.Instruction
	f := &Filter{}
	argument := false // the last word that was read is one of an argument
	for ins := range slices.Chunk(program, 8) {
		if len(ins) < 8 {
			return nil, errors.New("filter is truncated")
		}
		op := binary.NativeEndian.Uint16(ins)
		raw := bpf.RawInstruction{Op: op, Jt: ins[2], Jf: ins[3], K: binary.NativeEndian.Uint32(ins[4:])}
		code = append(code, raw.Disassemble())
		switch i := code[len(code)-1].(type) {
		case bpf.LoadAbsolute:
			if argument = i.Off >= offsetArgs; argument {
				f.arguments = append(f.arguments, int(i.Off-offsetArgs)/8)
			}
		case bpf.JumpIf, bpf.ALUOpConstant:
			if argument {
				f.constants = append(f.constants, raw.K)
			}
		}
	}
	var err error
	f.vm, err = bpf.NewVM(code)
	return f, err
}

// Call is a system call with one argument that is not zero.
type Call struct {
	Arch, Number uint32
	Index        int
	Value        uint64
}

// Verdict returns the return value of the filter (SECCOMP_RET_*).
func (f *Filter) Verdict(c Call) (uint32, error) {
	var data [dataBytes]byte
	// as the VM reads; the kernel reads native numbers
	put := func(offset int, value uint32) { binary.BigEndian.PutUint32(data[offset:], value) }
	put(offsetNumber, c.Number)
	put(offsetArch, c.Arch)
	low, high := 0, 4
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		low, high = 4, 0
	}
	put(offsetArgs+8*c.Index+low, uint32(c.Value))
	put(offsetArgs+8*c.Index+high, uint32(c.Value>>32))
	n, err := f.vm.Run(data[:])
	return uint32(n), err
}

// Difference is a call for which two filters decide differently.
type Difference struct {
	Call
	A, B uint32
}

func (d Difference) String() string {
	return fmt.Sprintf("architecture %#x, number %#x, argument %d = %#x: %#x and %#x", d.Arch, d.Number, d.Index, d.Value, d.A, d.B)
}

// Compare compares two filters for all system calls of some architectures, and of x86_64 also for those of x32, with arguments at and
// beside every constant of both filters, in each argument that one of them reads. It returns at most a hundred differences, and the number
// of calls for each verdict of a.
func Compare(a, b *Filter, architectures ...uint32) (differences []Difference, verdicts map[uint32]int, err error) {
	verdicts = map[uint32]int{}
	err = walk(a, b, architectures, func(d Difference) {
		verdicts[d.A]++
		if d.A != d.B && len(differences) < maxDifferences {
			differences = append(differences, d)
		}
	})
	return differences, verdicts, err
}

// maxDifferences limits what is returned.
const maxDifferences = 100

// CompareReduced compares a filter with one that has rules for fewer architectures. It returns the calls of the kept architectures for
// which they decide differently, and the other ones that b does not kill, with the number of calls of both kinds. The calls of x32 are
// other ones, but -1, which is no system call: a tracer sets this number to skip one, and both filters must let it pass with an error.
func CompareReduced(plain, reduced *Filter, kept []uint32,
	architectures ...uint32,
) (differences []Difference, same, killed int, err error) {
	err = walk(plain, reduced, architectures, func(d Difference) {
		isError := func(verdict uint32) bool { return verdict&retActionFull == retErrno }
		var ok bool
		switch hasX32 := d.Arch == unix.AUDIT_ARCH_X86_64; {
		case slices.Contains(kept, d.Arch) && hasX32 && d.Number == math.MaxUint32:
			ok = isError(d.A) && isError(d.B)
		case slices.Contains(kept, d.Arch) && (!hasX32 || d.Number < x32):
			ok = d.A == d.B
			same++
		default:
			ok = d.B == retKillThread
			killed++
		}
		if !ok && len(differences) < maxDifferences {
			differences = append(differences, d)
		}
	})
	return differences, same, killed, err
}

// Return values of filters (linux/seccomp.h).
const (
	retActionFull, retErrno, retKillThread = 0xffff0000, 0x00050000, 0
)

// walk evaluates two filters for the same calls.
func walk(a, b *Filter, architectures []uint32, visit func(Difference)) error {
	values := interesting(append(slices.Clone(a.constants), b.constants...))
	indexes := append(slices.Clone(a.arguments), b.arguments...)
	slices.Sort(indexes)
	if indexes = slices.Compact(indexes); len(indexes) == 0 {
		indexes = []int{0}
	}
	for _, arch := range architectures {
		for number := range uint32(2*numbers + 2) {
			switch {
			case number >= 2*numbers:
				number -= 2*numbers + 2 // the last ones
			case number >= numbers:
				number = number - numbers | x32
			}
			for _, index := range indexes {
				for _, value := range values {
					c := Call{arch, number, index, value}
					x, errX := a.Verdict(c)
					y, errY := b.Verdict(c)
					if err := errors.Join(errX, errY); err != nil {
						return err
					}
					visit(Difference{c, x, y})
				}
			}
		}
	}
	return nil
}

// interesting returns values of arguments at which the verdict can change.
func interesting(constants []uint32) []uint64 {
	values := []uint64{0, 1<<64 - 1}
	for bit := range 64 {
		values = append(values, 1<<bit)
	}
	for _, c := range constants {
		values = append(values, uint64(c), uint64(c)-1, uint64(c)+1, uint64(c)|1<<32)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// ptraceGetFilter is PTRACE_SECCOMP_GET_FILTER. The kernel must have CONFIG_CHECKPOINT_RESTORE.
const ptraceGetFilter = 0x420c

// Loaded returns the filter that the kernel has loaded last for a process, as soon as this executes the program. An OCI runtime returns a
// moment before, and a thread that executes a program can lose a request to stop.
func Loaded(pid int, program string) ([]byte, error) {
	if err := awaitProgram(pid, program); err != nil {
		return nil, err
	}
	runtime.LockOSThread() // ptrace belongs to a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return nil, os.NewSyscallError("PTRACE_SEIZE", err)
	}
	defer func() { _ = unix.PtraceDetach(pid) }()
	if err := stop(pid); err != nil {
		return nil, err
	}
	get := func(buffer unsafe.Pointer) (int, error) {
		n, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetFilter, uintptr(pid), 0, uintptr(buffer), 0, 0)
		if errno != 0 {
			return 0, os.NewSyscallError("PTRACE_SECCOMP_GET_FILTER", errno)
		}
		return int(n), nil
	}
	n, err := get(nil)
	if err != nil {
		return nil, err
	}
	filter := make([]byte, 8*n)
	_, err = get(unsafe.Pointer(&filter[0]))
	return filter, err
}

// awaitProgram waits until the first argument of a process is the program.
func awaitProgram(pid int, program string) error {
	return poll(fmt.Sprintf("process %d executes %s", pid, program), func() (bool, error) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.HasPrefix(string(command), program+"\x00"), err
	})
}

// stop stops a process that the thread traces.
func stop(pid int) error {
	if err := unix.PtraceInterrupt(pid); err != nil {
		return os.NewSyscallError("PTRACE_INTERRUPT", err)
	}
	return poll(fmt.Sprintf("process %d stops", pid), func() (bool, error) {
		var status unix.WaitStatus
		changed, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOHANG, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, os.NewSyscallError("wait4", err)
		}
		if changed == pid && !status.Stopped() {
			return false, fmt.Errorf("process %d exited (status %#x)", pid, status)
		}
		return changed == pid, nil
	})
}

// pollTime is the timeout of poll.
const pollTime = 30 * time.Second

// poll waits until the condition holds.
func poll(condition string, holds func() (bool, error)) error {
	timeout := time.After(pollTime)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if held, err := holds(); held || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-timeout:
			return fmt.Errorf("waited %v in vain: %s", pollTime, condition)
		}
	}
}
