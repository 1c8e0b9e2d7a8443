package cache

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names the tokens of a full block and of all blocks before it: SHA-256 of the key before it and of its own tokens. The hash is
// cryptographic because a collision would answer one user from another's prompt.
type Key [sha256.Size]byte

func seed(salt string) Key { return sha256.Sum256([]byte(salt)) }

// key is the key of block i of tokens, after the keys of the blocks before it.
func (c *Cache) key(s *Sequence, i int, tokens []int32) Key {
	for len(s.keys) <= i {
		before, n := s.seed, len(s.keys)
		if n > 0 {
			before = s.keys[n-1]
		}
		s.keys = append(s.keys, chain(before, tokens[n*c.blockSize:(n+1)*c.blockSize]))
	}
	return s.keys[i]
}

func chain(before Key, tokens []int32) Key {
	// Hashed in pieces of fixed size, so that no block, however long, allocates memory.
	const piece = 64
	var bytes [sha256.Size + 4*piece]byte
	for {
		n := min(piece, len(tokens))
		copy(bytes[:], before[:])
		for i, token := range tokens[:n] {
			binary.LittleEndian.PutUint32(bytes[sha256.Size+4*i:], uint32(token))
		}
		before = sha256.Sum256(bytes[:sha256.Size+4*n])
		if tokens = tokens[n:]; len(tokens) == 0 {
			return before
		}
	}
}
