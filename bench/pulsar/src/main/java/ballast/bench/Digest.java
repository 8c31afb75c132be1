package ballast.bench;

import java.nio.charset.StandardCharsets;

/** FNV-1a of 64 bits over texts, each ended by a newline, and doubles, as their eight bytes with the highest first. */
final class Digest {
    private long hash = 0xcbf29ce484222325L;

    private void octet(long b) {
        hash = (hash ^ (b & 0xff)) * 0x100000001b3L;
    }

    Digest add(String text) {
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            octet(b);
        }
        octet('\n');
        return this;
    }

    Digest add(double number) {
        long bits = Double.doubleToRawLongBits(number);
        for (int shift = 56; shift >= 0; shift -= 8) {
            octet(bits >>> shift);
        }
        return this;
    }

    @Override
    public String toString() {
        return String.format("%016x", hash);
    }
}
