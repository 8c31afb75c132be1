// Package pulsar is the event log on a real Pulsar cluster, over pulsar-client-go v0.19.0.
//
// It works around what that library loses:
//
//   - It discards a lone tombstone (an empty message outside a batch) as corrupt. On a persistent topic every message is
//     placed by its id, and what is missing is fetched over admin REST and delivered in its place: see persistent. Three
//     things show that something is missing: the library's own log line, which comes at once; the id of the next message;
//     and, for the end of the topic, its last entry, which is asked for from time to time. On a non-persistent topic there
//     are no ids and no history: there such a message is lost and counted, see Status.Discarded.
//   - It hands out a compressed empty payload as it is, compressed, so that a tombstone looks like a value: see
//     compressedNothing. Brokers before 4.1 compress every record of the ownership topic.
//   - After a reconnect it forgets what waited inside it, and a reader sometimes stays silent for good. The first is a hole
//     like any other; the second shows when a value has to be fetched, and gets a new reader.
//   - On non-persistent topics, where all ids are 0:0, it takes messages for duplicates of acknowledged ones. So nothing
//     is ever acknowledged there, and no Reader is used: see consumerSource.
//   - It gives the places of messages that compaction took out of a batch as empty messages without a key: see push.
//   - It reconnects without a word. Its log says so: see clientLogger. A periodic question to the broker backs that up.
//   - Its JSON schema rewrites the definition, which a broker would keep as a new version: see exactSchema.
//   - Waiting for an exclusive producer cannot be given up: see Publisher.
package pulsar
