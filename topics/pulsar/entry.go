package pulsar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// record is one message of an entry, however it was read.
type record struct {
	id       position
	key      string
	payload  []byte
	producer string
	publish  time.Time
	received time.Time // when it came to this process; zero = when it is accounted for
	// hidden is a message that no consumer is given: a marker, part of a chunked message, one of an aborted transaction,
	// or the place of one that compaction took out of a batch.
	hidden bool
}

// Headers of the answer to GET .../ledger/{ledger}/entry/{entry} (Pulsar: PersistentTopicsBase). The body is the payload,
// already decompressed by the broker; of a batch it is the batch, which is not taken apart.
const (
	headerBatch       = "X-Pulsar-num-batch-message"
	headerKey         = "X-Pulsar-partition-key"
	headerProducer    = "X-Pulsar-producer-name"
	headerPublishTime = "X-Pulsar-publish-time"
	headerSize        = "X-Pulsar-uncompressed-size"
	headerMarker      = "X-Pulsar-marker-type"
	headerChunks      = "X-Pulsar-num-chunks-from-msg"
	headerAborted     = "X-Pulsar-txn-aborted"
	headerEncrypted   = "X-Pulsar-Is-Encrypted"
)

// decodeEntry takes the answer for one entry apart. It never returns an empty slice without an error.
func decodeEntry(h http.Header, body []byte) ([]record, error) {
	if h.Get(headerEncrypted) == "true" {
		return nil, errors.New("the entry is encrypted")
	}
	publish, err := time.Parse(time.RFC3339Nano, h.Get(headerPublishTime))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", headerPublishTime, err)
	}
	if s := h.Get(headerSize); s != "" {
		if n, err := strconv.ParseInt(s, 10, 64); err != nil || n != int64(len(body)) {
			return nil, fmt.Errorf("the body has %d bytes, %s is %s", len(body), headerSize, s)
		}
	}
	whole := record{producer: h.Get(headerProducer), publish: publish, key: h.Get(headerKey), payload: body}
	whole.hidden = h.Get(headerMarker) != "" || h.Get(headerAborted) == "true"
	if n, err := strconv.Atoi(h.Get(headerChunks)); err == nil && n > 1 {
		whole.hidden = true
	}
	batch := h.Get(headerBatch)
	if batch == "" || whole.hidden {
		return []record{whole}, nil
	}
	n, err := strconv.Atoi(batch)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%s is %q: want a positive number", headerBatch, batch)
	}
	return decodeBatch(body, n, whole)
}

// decodeBatch takes a batch apart: n times [size of metadata][SingleMessageMetadata][payload].
func decodeBatch(body []byte, n int, like record) ([]record, error) {
	if n > len(body)/4+1 {
		return nil, fmt.Errorf("a batch of %d messages cannot have %d bytes", n, len(body))
	}
	records := make([]record, 0, n)
	for i := range n {
		if len(body) < 4 {
			return nil, fmt.Errorf("message %d of %d in the batch: the batch ends early", i, n)
		}
		size := binary.BigEndian.Uint32(body)
		body = body[4:]
		if uint64(size) > uint64(len(body)) {
			return nil, fmt.Errorf("message %d of %d in the batch: metadata of %d bytes, %d left", i, n, size, len(body))
		}
		meta, err := decodeSingle(body[:size])
		if err != nil {
			return nil, fmt.Errorf("message %d of %d in the batch: %w", i, n, err)
		}
		body = body[size:]
		if meta.payload < 0 || meta.payload > int64(len(body)) {
			return nil, fmt.Errorf("message %d of %d in the batch: payload of %d bytes, %d left", i, n, meta.payload, len(body))
		}
		r := like
		r.key, r.payload, r.hidden = meta.key, body[:meta.payload:meta.payload], meta.compactedOut
		body = body[meta.payload:]
		records = append(records, r)
	}
	return records, nil
}

// single is what matters of a SingleMessageMetadata (PulsarApi.proto).
type single struct {
	key          string
	payload      int64
	compactedOut bool
}

const (
	fieldKey          = 2
	fieldPayloadSize  = 3
	fieldCompactedOut = 4
)

func decodeSingle(b []byte) (single, error) {
	var m single
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m, protowire.ParseError(n)
		}
		b = b[n:]
		switch {
		case field == fieldKey && kind == protowire.BytesType:
			var v []byte
			if v, n = protowire.ConsumeBytes(b); n >= 0 {
				m.key = string(v)
			}
		case (field == fieldPayloadSize || field == fieldCompactedOut) && kind == protowire.VarintType:
			var v uint64
			v, n = protowire.ConsumeVarint(b)
			if field == fieldPayloadSize {
				m.payload = int64(int32(v))
			} else {
				m.compactedOut = v != 0
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return m, protowire.ParseError(n)
		}
		b = b[n:]
	}
	return m, nil
}
