package bits

// Bit tricks: every operator of the language at least once.

const (
	Flag0 uint8 = 1 << iota
	Flag1
	Flag2
	_
	Flag4; Flag5
)

const All, None = Flag0 | Flag1 | Flag2, 0

type Set uint64

func (s Set) Has(i uint) bool { return s&(1<<i) != 0 }

func (s *Set) Add(i uint)    { *s |= 1 << i }
func (s *Set) Remove(i uint) { *s &^= 1 << i }
func (s *Set) Toggle(i uint) { *s ^= 1 << i }
func (s *Set) Keep(m Set)    { *s &= m }

func Count(x uint64) int {
	x -= x >> 1 & 0x5555555555555555
	x = x&0x3333333333333333 + x>>2&0x3333333333333333
	x = (x + x>>4) & 0x0f0f0f0f0f0f0f0f
	return int(x * 0x0101010101010101 >> 56)
}

func Reverse(x uint8) (y uint8) {
	for i := 0; i < 8; i++ {
		y <<= 1
		y |= x & 1
		x >>= 1
	}
	return y
}

func Gray(n uint) uint   { return n ^ n>>1 }
func Lowest(n int) int   { return n & -n }
func Clear(n, m int) int { return n &^ m }
func Flip(n int) int     { return ^n }

func Power(base, exponent, modulus int) int {
	result := 1
	base %= modulus
	for exponent > 0 {
		if exponent&1 == 1 {
			result *= base
			result %= modulus
		}
		base *= base
		base %= modulus
		exponent /= 2
	}
	return result
}

func GCD(a, b int) int {
	for b != 0 { a, b = b, a%b }
	if a < 0 { return -a }
	return +a
}

/* CRC-32, reflected, polynomial 0xEDB88320. */
func CRC(data []byte) uint32 {
	crc := ^uint32(0)
	for _, b := range data {
		crc ^= uint32(b)
		for k := 0; k < 8; k++ {
			if crc&1 == 0 {
				crc >>= 1
			} else {
				crc = crc>>1 ^ 0xEDB88320
			}
		}
	}
	return ^crc
}

func Compare(a, b int) string {
	if a == b { return "=" }
	if a <= b && !(a >= b) || a < b { return "<" }
	if a != b && a > b {
		return ">"
	}
	return "?"
}

func Pointers(p **int, q *int) int {
	*p = q
	**p = *q * 2
	(*q)++
	x := &*q
	*x--
	return *x + +*q - -**p
};