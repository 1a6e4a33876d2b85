package statefile_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/internal/statefile"
)

// TestFlippedBytes changes each byte of a file to each other value. The file is either damaged or says the same.
func TestFlippedBytes(t *testing.T) {
	want := file{Text: "a", List: []part{{Name: "b", Count: 10}}, Whole: &part{Count: 2}}
	text, err := v1.Encode(want, statefile.Unknown{})
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	for i := range text {
		for value := range 256 {
			changed := append([]byte(nil), text...)
			changed[i] = byte(value)
			var got file
			if _, err := v1.Decode(changed, &got); err == nil && !cmp.Equal(want, got) {
				t.Fatalf("byte %d of %s changed to %#x is read as %+v", i, text, value, got)
			}
		}
	}
}

// rewritten is what versions before the checksum make of a file: they keep the members that they do not know, and sort all.
func rewritten(t *testing.T, text []byte, change func(members map[string]json.RawMessage)) []byte {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "version")
	change(members)
	rest, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Appendf(nil, `{"version":1,%s`, rest[1:])
}

// TestEarlierVersion lets a version without checksums change a file. This version reads it, and writes a new checksum.
func TestEarlierVersion(t *testing.T) {
	for _, want := range []file{{Text: "b"}, {Whole: &part{Name: "c"}}, {}} {
		text, err := v1.Encode(file{Text: "a", List: []part{{Name: "b"}}}, statefile.Unknown{})
		if err != nil {
			t.Fatal(err)
		}
		text = rewritten(t, text, func(members map[string]json.RawMessage) {
			delete(members, "text")
			delete(members, "list")
			if want.Text != "" {
				members["text"] = json.RawMessage(`"b"`)
			}
			if want.Whole != nil {
				members["whole"] = json.RawMessage(`{"name":"c"}`)
			}
		})
		var got file
		unknown, err := v1.Decode(text, &got)
		if err != nil || !cmp.Equal(want, got) || !unknown.IsZero() {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
		again, err := v1.Encode(got, unknown)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := v1.Encode(want, statefile.Unknown{})
		if err != nil || string(again) != string(fresh) {
			t.Errorf("written again: %s, want %s", again, fresh)
		}
	}
}
