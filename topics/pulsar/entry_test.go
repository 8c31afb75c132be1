package pulsar

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// answerOf makes the headers of an answer for an entry, as Pulsar 4.2.4 gives them.
func answerOf(more ...string) http.Header {
	h := http.Header{}
	for _, line := range append([]string{
		"X-Pulsar-Message-ID: 0:1", "X-Pulsar-PROPERTY: {}", "X-Pulsar-publish-time: 2026-11-30T02:05:20.059Z", "X-Pulsar-Is-Encrypted: false",
		"X-Pulsar-producer-name: local-0-1", "X-Pulsar-sequence-id: 1", "X-Pulsar-txn-uncommitted: false",
	}, more...) {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// batchOf makes the body of a batch of "key=value" messages; "-" is the place of one that was compacted away.
func batchOf(events ...string) []byte {
	var body []byte
	for _, e := range events {
		key, value, _ := strings.Cut(e, "=")
		var meta []byte
		if e == "-" {
			meta = protowire.AppendTag(meta, fieldCompactedOut, protowire.VarintType)
			meta = protowire.AppendVarint(meta, 1)
		} else {
			meta = protowire.AppendTag(meta, 1, protowire.BytesType) // a property, to be skipped
			meta = protowire.AppendBytes(meta, []byte("\n\x01a\x12\x01b"))
			meta = protowire.AppendTag(meta, fieldKey, protowire.BytesType)
			meta = protowire.AppendString(meta, key)
			meta = protowire.AppendTag(meta, 8, protowire.VarintType) // sequence_id
			meta = protowire.AppendVarint(meta, 77)
		}
		meta = protowire.AppendTag(meta, fieldPayloadSize, protowire.VarintType)
		meta = protowire.AppendVarint(meta, uint64(len(value)))
		body = binary.BigEndian.AppendUint32(body, uint32(len(meta)))
		body = append(append(body, meta...), value...)
	}
	return body
}

func shown(records []record) []string {
	var all []string
	for _, r := range records {
		s := r.key + "=" + string(r.payload)
		if r.hidden {
			s += " hidden"
		}
		all = append(all, s)
	}
	return all
}

func TestDecodeEntry(t *testing.T) {
	for name, test := range map[string]struct {
		header http.Header
		body   []byte
		want   []string
		err    string
	}{
		"alone":       {answerOf("X-Pulsar-partition-key: a", "X-Pulsar-uncompressed-size: 2"), []byte("{}"), []string{"a={}"}, ""},
		"tombstone":   {answerOf("X-Pulsar-partition-key: a", "X-Pulsar-null-value: true", "X-Pulsar-uncompressed-size: 0"), nil, []string{"a="}, ""},
		"batch":       {answerOf("X-Pulsar-num-batch-message: 3"), batchOf("a=1", "b=", "a=333"), []string{"a=1", "b=", "a=333"}, ""},
		"batch of 1":  {answerOf("X-Pulsar-num-batch-message: 1"), batchOf("a="), []string{"a="}, ""},
		"compacted":   {answerOf("X-Pulsar-num-batch-message: 3"), batchOf("-", "b=2", "-"), []string{"= hidden", "b=2", "= hidden"}, ""},
		"marker":      {answerOf("X-Pulsar-marker-type: 20"), []byte("x"), []string{"=x hidden"}, ""},
		"chunk":       {answerOf("X-Pulsar-num-chunks-from-msg: 2", "X-Pulsar-partition-key: a"), []byte("x"), []string{"a=x hidden"}, ""},
		"aborted":     {answerOf("X-Pulsar-txn-aborted: true", "X-Pulsar-num-batch-message: 2"), []byte("x"), []string{"=x hidden"}, ""},
		"cut off":     {answerOf("X-Pulsar-uncompressed-size: 3"), []byte("{}"), nil, "has 2 bytes"},
		"no time":     {http.Header{}, nil, nil, "X-Pulsar-publish-time"},
		"bad count":   {answerOf("X-Pulsar-num-batch-message: many"), nil, nil, `"many"`},
		"none":        {answerOf("X-Pulsar-num-batch-message: 0"), nil, nil, `"0"`},
		"too many":    {answerOf("X-Pulsar-num-batch-message: 1000000000"), batchOf("a=1"), nil, "cannot have"},
		"ends early":  {answerOf("X-Pulsar-num-batch-message: 2"), batchOf("a=1"), nil, "ends early"},
		"bad size":    {answerOf("X-Pulsar-num-batch-message: 1"), []byte{0, 0, 0, 9, 1}, nil, "metadata of 9 bytes"},
		"bad payload": {answerOf("X-Pulsar-num-batch-message: 1"), []byte{0, 0, 0, 2, 0x18, 5, 'x'}, nil, "payload of 5 bytes"},
		"negative":    {answerOf("X-Pulsar-num-batch-message: 1"), append([]byte{0, 0, 0, 11, 0x18}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), nil, "payload of -1"},
		"bad field":   {answerOf("X-Pulsar-num-batch-message: 1"), []byte{0, 0, 0, 1, 0xff}, nil, "message 0 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeEntry(test.header, test.body)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one about %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, shown(got)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			for _, r := range got {
				if r.producer != "local-0-1" || !r.publish.Equal(time.UnixMilli(1796004320059)) {
					t.Errorf("record %+v", r)
				}
			}
		})
	}
	h := answerOf()
	h.Set(headerEncrypted, "true")
	if _, err := decodeEntry(h, nil); err == nil || !strings.Contains(err.Error(), "encrypted") {
		t.Errorf("an encrypted entry: %v", err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(batchOf("a=1", "b=", "-"), 3)
	f.Add([]byte{0, 0, 0, 2, 0x18, 5, 'x'}, 1)
	f.Fuzz(func(t *testing.T, body []byte, n int) {
		records, err := decodeEntry(answerOf(fmt.Sprintf("X-Pulsar-num-batch-message: %d", n)), body)
		if err != nil {
			return
		}
		size := 0
		for _, r := range records {
			size += len(r.payload)
		}
		if len(records) != n || size > len(body) {
			t.Errorf("%d records with %d bytes out of a batch of %d with %d bytes", len(records), size, n, len(body))
		}
	})
}

func TestCompressedNothing(t *testing.T) {
	deflated := func(level int, s string) []byte {
		var b bytes.Buffer
		z, err := zlib.NewWriterLevel(&b, level)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write([]byte(s))
		_ = z.Close()
		return b.Bytes()
	}
	for name, b := range map[string][]byte{
		"zstd":       {0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0},
		"zstd, sum":  {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0, 1, 0, 0, 0x99, 0xe9, 0xd8, 0x51},
		"lz4":        {0},
		"zlib":       deflated(zlib.DefaultCompression, ""),
		"zlib, best": deflated(zlib.BestCompression, ""),
	} {
		if !compressedNothing(b) {
			t.Errorf("%s: % x is taken for a value", name, b)
		}
	}
	for _, b := range [][]byte{nil, []byte("{}"), []byte("0"), []byte("null"), deflated(9, "x"), []byte(`{"state":"Owned"}`), bytes.Repeat([]byte{0x28}, 100)} {
		if compressedNothing(b) {
			t.Errorf("% x is taken for nothing", b)
		}
	}
}
