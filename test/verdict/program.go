package verdict

import "encoding/binary"

// Program32 returns a program for i386 that exits with a code. Kernels for x86_64 run it if they support 32-bit programs.
func Program32(code byte) []byte {
	const base, header, segment = 0x08048000, 52, 32 // the sizes of both headers, and the address
	text := []byte{
		0xb8, 1, 0, 0, 0, // mov eax, SYS_exit
		0xbb, code, 0, 0, 0, // mov ebx, code
		0xcd, 0x80, // int 0x80
	}
	size := uint32(header + segment + len(text))
	le := binary.LittleEndian
	p := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	for _, half := range []uint16{2, 3} { // ET_EXEC, EM_386
		p = le.AppendUint16(p, half)
	}
	for _, word := range []uint32{1, base + header + segment, header, 0, 0} { // version, entry, program headers, no sections, flags
		p = le.AppendUint32(p, word)
	}
	for _, half := range []uint16{header, segment, 1, 0, 0, 0} {
		p = le.AppendUint16(p, half)
	}
	for _, word := range []uint32{1, 0, base, base, size, size, 5, 0x1000} { // PT_LOAD, readable and executable
		p = le.AppendUint32(p, word)
	}
	return append(p, text...)
}
